#include "api/spec_estimate.h"

#include <errno.h>
#include <string.h>

#include "api/or_null.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"

void job_estimate_init(struct job_estimate *estimate)
{
    *estimate =
        (struct job_estimate){.bytes = -1, .median_bytes = -1, .smact_permille = -1, .uncorrected_permille = -1};
}

void job_estimate_release(struct job_estimate *estimate)
{
    free(estimate->model);
    free(estimate->source);
    free(estimate->from);
    free(estimate->profile);
    spec_strings_release(&estimate->warnings);
    job_estimate_init(estimate);
}

struct job_estimate job_estimate_copy(const struct job_estimate *estimate)
{
    struct job_estimate copy = *estimate;

    copy.model = xstrdup(estimate->model);
    copy.source = xstrdup(estimate->source);
    copy.from = xstrdup(estimate->from);
    copy.profile = xstrdup(estimate->profile);
    copy.warnings = (struct spec_strings){0};
    for (size_t i = 0; i < estimate->warnings.count; i++)
        spec_strings_add(&copy.warnings, estimate->warnings.items[i]);
    return copy;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool job_estimate_equal(const struct job_estimate *a, const struct job_estimate *b)
{
    return a->bytes == b->bytes && a->median_bytes == b->median_bytes && a->quantile_permille == b->quantile_permille &&
           a->confidence_permille == b->confidence_permille && a->smact_permille == b->smact_permille &&
           a->uncorrected_permille == b->uncorrected_permille && same_text(a->model, b->model) &&
           same_text(a->source, b->source) && same_text(a->from, b->from) && same_text(a->profile, b->profile) &&
           spec_strings_equal(&a->warnings, &b->warnings);
}

json_t *job_estimate_to_json(const struct job_estimate *estimate)
{
    json_t *warnings = json_array();

    for (size_t i = 0; i < estimate->warnings.count; i++)
        json_array_append_new(warnings, text_or_null(estimate->warnings.items[i]));
    return json_pack("{s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes",
                     natural_or_null(estimate->bytes), "median_bytes", natural_or_null(estimate->median_bytes),
                     "quantile_permille", (int)estimate->quantile_permille, "confidence_permille",
                     (int)estimate->confidence_permille, "sm_activity_permille",
                     natural_or_null(estimate->smact_permille), "uncorrected_sm_activity_permille",
                     natural_or_null(estimate->uncorrected_permille), "model", text_or_null(estimate->model), "source",
                     text_or_null(estimate->source), "from", text_or_null(estimate->from), "machine_profile",
                     text_or_null(estimate->profile), "warnings", warnings);
}

static int64_t integer_of(const json_t *json)
{
    return json_is_integer(json) ? json_integer_value(json) : -1;
}

static char *text_of(const json_t *json)
{
    return xstrdup(json_string_value(json));
}

int job_estimate_from_json(const json_t *json, struct job_estimate *estimate, struct error *err)
{
    const json_t *bytes, *median, *quantile, *confidence, *smact, *source, *from, *profile, *warnings, *warning;
    const json_t *uncorrected = NULL, *model = NULL; /* an earlier carma did not store them, and a later one: */
    const json_t *step = NULL;                       /* how long a step would take; nothing went by it */
    size_t i;

    job_estimate_init(estimate);
    if (json_unpack_ex(
            (json_t *)json, NULL, JSON_STRICT, "{s:o, s:o, s:o, s:o, s:o, s?o, s?o, s?o, s:o, s:o, s:o, s:o}", "bytes",
            &bytes, "median_bytes", &median, "quantile_permille", &quantile, "confidence_permille", &confidence,
            "sm_activity_permille", &smact, "uncorrected_sm_activity_permille", &uncorrected, "model", &model, "step",
            &step, "source", &source, "from", &from, "machine_profile", &profile, "warnings", &warnings) != 0)
        return error_set(err, EINVAL, "the estimate has other members than an estimate has");
    estimate->bytes = integer_of(bytes);
    estimate->median_bytes = integer_of(median);
    estimate->quantile_permille = (int32_t)integer_of(quantile);
    estimate->confidence_permille = (int32_t)integer_of(confidence);
    estimate->smact_permille = (int32_t)integer_of(smact);
    estimate->uncorrected_permille = (int32_t)integer_of(uncorrected);
    estimate->model = text_of(model);
    estimate->source = text_of(source);
    estimate->from = text_of(from);
    estimate->profile = text_of(profile);
    json_array_foreach ((json_t *)warnings, i, warning)
        if (json_is_string(warning))
            spec_strings_add(&estimate->warnings, json_string_value(warning));
    return 0;
}

/* 930 as "0.93". */
static void put_part(struct strbuf *out, int32_t permille)
{
    if (permille % 10)
        strbuf_printf(out, "%.3f", permille / 1000.0);
    else
        strbuf_printf(out, "%.2f", permille / 1000.0);
}

char *job_estimate_text(const struct job_estimate *estimate)
{
    struct strbuf out = {0};
    char bytes[UNITS_TEXT];

    if (estimate->bytes < 0 || !estimate->source)
        return NULL;
    strbuf_printf(&out, "estimated %s by %s (confidence ", format_bytes(estimate->bytes, bytes), estimate->source);
    put_part(&out, estimate->confidence_permille);
    strbuf_puts(&out, ", at quantile ");
    put_part(&out, estimate->quantile_permille);
    strbuf_puts(&out, ")");
    if (estimate->from)
        strbuf_printf(&out, " from %s", estimate->from);
    return strbuf_steal(&out);
}
