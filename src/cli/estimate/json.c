/* An estimate as JSON: docs/formats/cli.md. */
#include <jansson.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "cli/estimate/estimate.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"

static json_t *known_share(int32_t permille)
{
    return permille < 0 ? json_null() : json_real(permille / 1000.0);
}

static json_t *safe(const char *text)
{
    CLEANUP(free_ptr) char *escaped = text ? term_escape(text) : NULL;

    return escaped ? json_string(escaped) : json_null();
}

/* Of a replay alone. */
static json_t *allocated(const struct estimate *estimate)
{
    return estimate->has_parts ? json_integer(estimate->allocated_bytes) : json_null();
}

static json_t *parts_json(const struct estimate_input *input, const struct estimate_answer *answer)
{
    CLEANUP(estimate_parts_release) struct estimate_parts parts;
    json_t *list;

    estimate_parts_of(&parts, input, answer);
    if (parts.count == 0)
        return json_null();
    list = json_array();
    for (size_t i = 0; i < parts.count; i++) {
        const struct estimate_part *part = &parts.items[i];
        json_array_append_new(list, json_pack("{s:o, s:I, s:b}", "what", safe(part->name), "bytes",
                                              (json_int_t)part->bytes, "layer", (int)part->layer));
    }
    return list;
}

static json_t *answer_json(const struct estimate_input *input, const struct estimate_answer *answer)
{
    const struct estimate *e = &answer->estimate;
    json_t *warnings;

    if (!answer->known)
        return json_pack("{s:s, s:o}", "estimator", answer->estimator->name, "error", safe(answer->why_not.text));
    warnings = json_array();
    for (size_t i = 0; i < input->warnings.count; i++)
        json_array_append_new(warnings, safe(input->warnings.items[i]));
    if (*e->warning)
        json_array_append_new(warnings, safe(e->warning));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:b, s:o, s:o, s:f, s:b, s:o}", "estimator",
                     answer->estimator->name, "source", e->source, "memory_bytes", (json_int_t)e->bytes, "median_bytes",
                     (json_int_t)e->median_bytes, "low_bytes", (json_int_t)answer->low_bytes, "allocated_bytes",
                     allocated(e), "lower_bound", (int)e->lower_bound, "sm_activity", known_share(e->smact_permille),
                     "sm_occupancy", known_share(e->smocc_permille), "confidence", e->confidence_permille / 1000.0,
                     "exceeds_gpu", (int)e->exceeds_gpu, "warnings", warnings);
}

/* The question. */
static void add_question(json_t *json, const struct estimate_input *input)
{
    const struct estimate_question *q = &input->question;
    const struct machine_profile *profile = &input->profile;

    json_object_set_new(json, "from", safe(input->from));
    json_object_set_new(json, "format",
                        json_string(input->configured    ? "hf-config"
                                    : input->has_capture ? "capture"
                                    : input->has_summary ? summary_format_name(input->summary.format)
                                                         : "declared"));
    json_object_set_new(json, "batch_size", input->from ? json_integer(q->training.batch_size) : json_null());
    json_object_set_new(json, "optimizer", json_string(optimizer_name(q->training.optimizer)));
    json_object_set_new(json, "precision", json_string(precision_name(q->training.precision)));
    json_object_set_new(json, "quantile", json_real(q->quantile_permille / 1000.0));
    json_object_set_new(json, "gpu",
                        json_pack("{s:s, s:s, s:I, s:I}", "profile", profile->name, "model", profile->gpu,
                                  "memory_bytes", (json_int_t)profile->memory_bytes, "context_bytes",
                                  (json_int_t)profile->context_bytes));
}

void estimate_print_json(const struct estimate_input *input, const struct estimate_answer *answers, size_t count,
                         bool all, bool explain)
{
    CLEANUP(json_release) json_t *json = NULL;

    if (!all) {
        json = answer_json(input, answers);
        if (explain)
            json_object_set_new(json, "parts", parts_json(input, answers));
    } else {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(list, answer_json(input, &answers[i]));
        json = json_pack("{s:o}", "estimates", list);
    }
    add_question(json, input);
    CLEANUP(free_ptr)
    char *text =
        printable_json(json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6))); /* fractions of a thousand */
    puts(text);
}
