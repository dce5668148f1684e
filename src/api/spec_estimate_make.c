/* From a submission to an estimator's question, and its answer in words. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/hf/training.h"
#include "api/spec.h"
#include "api/spec_estimate.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "estimate/combine.h"
#include "estimate/summary/read.h"

#define SOURCES 3 /* capture, configuration, summary */

struct asking {
    const struct job_spec *spec;
    const struct estimator *estimator;
    struct estimate_question question;
    struct job_estimate *to;
    int64_t *events_left;
    struct estimate answers[SOURCES];
    const char *from[SOURCES]; /* borrowed: the files that they went by */
    size_t count;
};

static void warn(struct job_estimate *estimate, const char *text)
{
    if (*text)
        spec_strings_add(&estimate->warnings, text);
}

/* "a.capture, b.txt" */
static char *files_that_counted(const struct asking *asking, const bool *counted)
{
    struct strbuf text = {0};

    for (size_t i = 0; i < asking->count; i++)
        if (counted[i])
            strbuf_printf(&text, "%s%s", text.length ? ", " : "", asking->from[i]);
    return strbuf_steal(&text);
}

static void fill(struct asking *asking)
{
    struct job_estimate *to = asking->to;
    char bytes[UNITS_TEXT], most[UNITS_TEXT];
    struct estimate combined, *answer = &combined;
    bool counted[SOURCES];

    combine(asking->answers, asking->count, to->quantile_permille, answer, counted);
    answer->exceeds_gpu = answer->bytes > asking->question.profile->memory_bytes;
    to->bytes = answer->bytes;
    to->median_bytes = answer->median_bytes;
    to->confidence_permille = answer->confidence_permille;
    to->smact_permille = answer->smact_permille == 0 ? 1 : answer->smact_permille; /* a training job is not idle */
    to->uncorrected_permille = to->smact_permille;
    if (answer->family)
        to->model = xasprintf("%s %" PRId64, answer->family, answer->parameter_bytes);
    to->source = xstrdup(answer->source);
    to->from = files_that_counted(asking, counted);
    to->profile = xstrdup(asking->question.profile->name);
    for (size_t i = 0; i < asking->count; i++)
        if (counted[i])
            warn(to, asking->answers[i].warning);
    if (answer->exceeds_gpu) {
        CLEANUP(free_ptr)
        char *text =
            xasprintf("the estimate of %s is more than a GPU has (%s): the job is given a whole one",
                      format_bytes(answer->bytes, bytes), format_bytes(asking->question.profile->memory_bytes, most));
        warn(to, text);
    }
}

/* A figure that is known to be too low is useful only where it exceeds the GPU or the submitter's limit. */
static int ask(struct asking *asking, const char *from, struct error *err)
{
    struct estimate answer;
    int rc = estimate(asking->estimator, &asking->question, &answer, err);

    if (rc)
        return rc;
    if (answer.lower_bound && !answer.exceeds_gpu && asking->spec->gpu_memory_bytes < 0)
        return error_set(err, ENOTSUP,
                         "%s: no output shapes, so nothing is estimated: print a summary with them, or give a capture",
                         from);
    asking->from[asking->count] = from;
    asking->answers[asking->count++] = answer;
    return 0;
}

/* A command's own words go before the environment that it runs in. */
void job_allocator_settings(const struct job_spec *spec, struct allocator_settings *settings)
{
    for (size_t i = 0; i < spec->environment.count; i++)
        if (strncmp(spec->environment.items[i], "PYTORCH_", 8) == 0)
            allocator_settings_read(settings, spec->environment.items[i]);
    if (spec->script)
        allocator_settings_read(settings, spec->script);
    for (size_t i = 0; i < spec->command.count; i++)
        allocator_settings_read(settings, spec->command.items[i]);
}

/* The words were checked with the rest of the specification. */
static void set_training(const struct job_spec *spec, struct training *training)
{
    training_default(training);
    job_allocator_settings(spec, &training->allocator);
    if (spec->optimizer)
        optimizer_parse(spec->optimizer, &training->optimizer, NULL);
    if (spec->precision)
        precision_parse(spec->precision, &training->precision, NULL);
}

static void warn_of_other(struct job_estimate *to, const char *what, const char *said, const char *recorded)
{
    CLEANUP(free_ptr)
    char *text = xasprintf("the capture was recorded with %s: the job's %s %s changes nothing", recorded, what, said);

    if (strcmp(said, recorded) != 0)
        warn(to, text);
}

/* The job's own optimizer takes the place of the recorded one where it can. */
static void take_optimizer(struct asking *asking, struct capture *capture)
{
    const char *said = asking->spec->optimizer;
    struct training *training = &asking->question.training;
    struct error why;

    if (said && capture_change(capture, &(struct capture_changes){.optimizer = training->optimizer}, &why) != 0 &&
        capture->optimizer_known)
        warn_of_other(asking->to, "optimizer", said, optimizer_name(capture->optimizer));
    if (capture->optimizer_known)
        training->optimizer = capture->optimizer;
}

static int ask_capture(struct asking *asking, struct error *err)
{
    const struct job_spec *spec = asking->spec;
    struct training *training = &asking->question.training;
    const char *name = spec->capture_name ? spec->capture_name : "the capture";
    struct capture capture;
    int rc = capture_read(&capture, name, spec->capture, strlen(spec->capture), spec->batch_size, err);

    if (rc)
        return rc;
    if ((rc = estimate_spend(asking->events_left, (int64_t)capture.program.event_count, name, err))) {
        capture_release(&capture);
        return rc;
    }
    set_training(spec, training);
    job_allocator_settings(spec, &capture.program.allocator);
    training->allocator = capture.program.allocator;
    training->batch_size = capture.batch_size;
    take_optimizer(asking, &capture);
    training->precision = capture.precision;
    if (spec->precision)
        warn_of_other(asking->to, "precision", spec->precision, precision_name(capture.precision));
    asking->question.capture = &capture;
    rc = ask(asking, name, err);
    asking->question.capture = NULL;
    capture_release(&capture);
    return rc;
}

static int ask_configuration(struct asking *asking, struct error *err)
{
    const struct job_spec *spec = asking->spec;
    const char *name = spec->hf_config_name ? spec->hf_config_name : "the configuration";
    struct training *training = &asking->question.training;
    struct transformer transformer;
    struct method method;
    struct capture capture;
    int rc = hf_training_capture(&capture, &transformer, &method, spec, asking->events_left, err);

    if (rc)
        return rc;
    training_default(training);
    job_allocator_settings(spec, &capture.program.allocator);
    training->allocator = capture.program.allocator;
    training->batch_size = capture.batch_size;
    training->optimizer = capture.optimizer;
    training->precision = capture.precision;
    asking->question.capture = &capture;
    asking->question.transformer = &transformer;
    asking->question.method = &method;
    rc = ask(asking, name, err);
    asking->question.capture = NULL;
    asking->question.transformer = NULL;
    capture_release(&capture);
    return rc;
}

static int ask_summary(struct asking *asking, struct error *err)
{
    const struct job_spec *spec = asking->spec;
    const char *name = spec->summary_name ? spec->summary_name : "the summary";
    struct summary summary;
    struct error why;
    int64_t batch_size;
    int rc = summary_read(&summary, name, spec->summary, strlen(spec->summary), &why);

    if (rc == -EBADMSG) /* no reason to refuse the job */
        return error_set(err, ENOTSUP, "nothing is estimated by the summary: %s", why.text);
    if (rc)
        return error_set(err, -rc, "%s", why.text);
    for (size_t i = 0; i < summary.warning_count && i < SUMMARY_MAX_WARNINGS; i++)
        warn(asking->to, summary.warnings[i]);
    batch_size = spec->batch_size > 0 ? spec->batch_size : summary.layers.batch_size;
    if (batch_size <= 0) {
        /* Any guess would be wrong by factors. */
        rc = error_set(err, ENOTSUP, "%s: no batch size, so nothing is estimated: give --batch-size", name);
    } else if (!(rc = estimate_spend(asking->events_left, estimate_layer_events(&summary.layers), name, err))) {
        set_training(spec, &asking->question.training);
        asking->question.training.batch_size = batch_size;
        layers_complete(&summary.layers);
        asking->question.layers = &summary.layers;
        rc = ask(asking, name, err);
        asking->question.layers = NULL;
    }
    summary_release(&summary);
    return rc;
}

/* Warnings about a source that failed afterwards are about nothing. */
static void forget_warnings(struct job_estimate *estimate, size_t kept)
{
    while (estimate->warnings.count > kept)
        free(estimate->warnings.items[--estimate->warnings.count]);
}

int job_estimate_make(struct job_estimate *estimate, const struct job_spec *spec, const struct estimator *estimator,
                      const struct machine_profile *profile, int32_t quantile_permille, int64_t *events_left,
                      struct error *err)
{
    struct asking asking = {
        .spec = spec,
        .estimator = estimator,
        .question = {.profile = profile, .declared_bytes = -1, .quantile_permille = quantile_permille, .fold = -1},
        .to = estimate,
        .events_left = events_left,
    };
    const struct {
        const char *text;
        int (*ask)(struct asking *, struct error *);
    } sources[] = {{spec->capture, ask_capture}, {spec->hf_config, ask_configuration}, {spec->summary, ask_summary}};
    struct error why;
    int rc;

    job_estimate_init(estimate);
    estimate->quantile_permille = quantile_permille;
    for (size_t i = 0; i < array_size(sources); i++) {
        size_t before = asking.count, warnings = estimate->warnings.count;
        if (!sources[i].text)
            continue;
        rc = sources[i].ask(&asking, &why);
        if (rc == -E2BIG || (rc && rc != -ENOTSUP && before == 0)) {
            job_estimate_release(estimate);
            return error_set(err, -rc, "%s", why.text);
        }
        if (rc) {
            forget_warnings(estimate, warnings);
            warn(estimate, why.text);
        }
    }
    if (asking.count)
        fill(&asking);
    return 0;
}
