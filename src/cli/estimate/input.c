/* The input of `carma estimate`: a summary, a capture, a job that names them or is recorded; the machine. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/hf/training.h"
#include "api/spec.h"
#include "api/spec_estimate.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/estimate/estimate.h"
#include "cli/job/doubts.h"
#include "cli/job/submit.h"

void estimate_input_init(struct estimate_input *input)
{
    *input = (struct estimate_input){0};
}

void estimate_input_release(struct estimate_input *input)
{
    if (input->has_summary)
        summary_release(&input->summary);
    if (input->has_capture)
        capture_release(&input->capture);
    free_ptr(&input->from);
    spec_strings_release(&input->warnings);
    estimate_input_init(input);
}

static int read_text(const char *what, const char *path, size_t limit, char **text, size_t *length, struct error *err)
{
    int rc = file_read(path, limit, text, length, err);

    if (rc == -EFBIG)
        return error_set(err, EFBIG, "%s: too large for a %s: at most %zu KiB", path, what, limit >> 10);
    if (rc)
        error_prefix(err, "%s", what);
    return rc;
}

static int take_summary(struct estimate_input *input, const char *name, const char *text, size_t length,
                        struct error *err)
{
    struct summary *summary = &input->summary;
    int rc = summary_read(summary, name, text, length, err);

    if (rc)
        return rc;
    input->has_summary = true;
    for (size_t i = 0; i < summary->warning_count && i < SUMMARY_MAX_WARNINGS; i++)
        spec_strings_add(&input->warnings, summary->warnings[i]);
    if (summary->warning_count > SUMMARY_MAX_WARNINGS) {
        CLEANUP(free_ptr)
        char *more = xasprintf("%s: and %zu more of this kind", name, summary->warning_count - SUMMARY_MAX_WARNINGS);
        spec_strings_add(&input->warnings, more);
    }
    layers_complete(&summary->layers);
    input->question.layers = &summary->layers;
    return 0;
}

static int take_capture(struct estimate_input *input, const char *name, const char *text, size_t length,
                        int64_t batch_size, struct error *err)
{
    int rc = capture_read(&input->capture, name, text, length, batch_size, err);

    if (rc)
        return rc;
    input->has_capture = true;
    input->question.capture = &input->capture;
    return 0;
}

static int take_configuration(struct estimate_input *input, const struct job_spec *spec, struct error *err)
{
    int64_t events_left = PROGRAM_MAX_EVENTS;
    int rc = hf_training_capture(&input->capture, &input->transformer, &input->method, spec, &events_left, err);

    if (rc)
        return rc;
    input->has_capture = input->configured = true;
    input->question.transformer = &input->transformer;
    input->question.method = &input->method;
    input->question.capture = &input->capture;
    return 0;
}

/* Of the caller, whose environment a job has; of the job. */
static void take_allocator(struct allocator_settings *settings, const struct job_spec *said)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

    for (size_t i = 0; i < array_size(names); i++)
        if (getenv(names[i]))
            allocator_settings_read(settings, getenv(names[i]));
    job_allocator_settings(said, settings);
}

/* How it is trained: the options go before the summary or the capture. Another optimizer's step can stand in a capture;
 * with another precision every operator would have been another. */
static int take_training(struct estimate_input *input, const struct job_spec *said, struct error *err)
{
    const char *optimizer = said->optimizer, *precision = said->precision;
    struct training *training = &input->question.training;
    struct capture *capture = input->has_capture ? &input->capture : NULL;
    int rc;

    if (capture) /* which has those of its script */
        training->allocator = capture->program.allocator;
    take_allocator(&training->allocator, said);
    if (capture)
        capture->program.allocator = training->allocator;
    if (optimizer && (rc = optimizer_parse(optimizer, &training->optimizer, err)))
        return rc;
    if (precision && (rc = precision_parse(precision, &training->precision, err)))
        return rc;
    if (capture) {
        if (optimizer && !input->configured &&
            (rc = capture_change(capture, &(struct capture_changes){.optimizer = training->optimizer}, err)))
            return error_prefix(err, "%s", input->from), rc;
        if (precision && capture->precision != training->precision)
            return error_set(err, EINVAL, "%s was recorded with %s, not %s: record it again, or leave --precision out",
                             input->from, precision_name(capture->precision), precision);
        if (!optimizer && capture->optimizer_known)
            training->optimizer = capture->optimizer;
        training->precision = capture->precision;
        training->batch_size = capture->batch_size;
        return 0;
    }
    training->batch_size = said->batch_size > 0 ? said->batch_size
                           : input->has_summary ? input->summary.layers.batch_size
                                                : -1;
    if (training->batch_size > 0)
        return 0;
    if (input->has_summary)
        return error_set(err, EINVAL, "%s does not say the batch size: give it with --batch-size", input->from);
    training->batch_size = 1; /* the declared figure does not depend on it */
    return 0;
}

static int read_files(struct estimate_input *input, struct job_spec *said, struct error *err)
{
    CLEANUP(free_ptr) char *summary = NULL, *capture = NULL;
    size_t length;
    int rc;

    input->from = xstrdup(said->hf_config_name ? said->hf_config_name
                          : said->capture_name ? said->capture_name
                                               : said->summary_name);
    if (said->hf_config_name) {
        rc = read_text("model configuration", said->hf_config_name, SPEC_MAX_SUMMARY, &said->hf_config, &length, err);
        if (rc == 0 && said->lengths_name)
            rc = read_text("list of lengths", said->lengths_name, SPEC_MAX_LENGTHS, &said->lengths, &length, err);
        if (rc == 0)
            rc = take_configuration(input, said, err);
    } else if (said->capture_name) {
        rc = read_text("capture", said->capture_name, CAPTURE_MAX_BYTES, &capture, &length, err);
        if (rc == 0)
            rc = take_capture(input, said->capture_name, capture, length, said->batch_size, err);
    } else {
        rc = read_text("model summary", said->summary_name, SUMMARY_MAX_BYTES, &summary, &length, err);
        if (rc == 0)
            rc = take_summary(input, said->summary_name, summary, length, err);
    }
    return rc ? rc : take_training(input, said, err);
}

static int take_spec(struct estimate_input *input, const struct job_spec *spec, struct error *err)
{
    int rc = 0;

    input->question.declared_bytes = spec->gpu_memory_bytes;
    input->from = xstrdup(spec->capture     ? spec->capture_name
                          : spec->hf_config ? spec->hf_config_name
                                            : spec->summary_name);
    if (spec->summary)
        rc = take_summary(input, spec->summary_name, spec->summary, strlen(spec->summary), err);
    if (rc == 0 && spec->capture)
        rc = take_capture(input, spec->capture_name, spec->capture, strlen(spec->capture), spec->batch_size, err);
    else if (rc == 0 && spec->hf_config)
        rc = take_configuration(input, spec, err);
    return rc ? rc : take_training(input, spec, err);
}

/* The daemon would record it, too. */
static bool must_be_recorded(const struct job_spec *spec)
{
    bool told = spec->summary || spec->capture || spec->hf_config || spec->gpu_memory_bytes >= 0;

    return job_spec_asks_for_capture(spec) || (!told && !spec->no_capture);
}

/* A job is read as `carma submit` reads it. */
static int read_job(struct estimate_input *input, const struct estimate_options *options, struct error *err)
{
    CLEANUP(job_spec_release) struct job_spec spec;
    int rc =
        options->job_file
            ? submit_from_file(&spec, options->job_file, options->command, options->command_count, options->said, err)
            : submit_from_command(&spec, options->command, options->command_count, options->said, err);

    if (rc)
        return rc;
    if (must_be_recorded(&spec)) {
        char *from = NULL;
        doubts_tell_command(&spec);
        rc = estimate_record(&spec, &input->warnings, &spec.capture, &from, err);
        free(spec.capture_name);
        spec.capture_name = from;
    }
    if (rc == 0)
        rc = take_spec(input, &spec, err);
    if (rc && options->job_file)
        error_prefix(err, "%s", options->job_file);
    return rc;
}

int estimate_read_profile(struct machine_profile *profile, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int rc = read_text("machine profile", path, MACHINE_PROFILE_MAX_BYTES, &text, &length, err);

    return rc ? rc : machine_profile_read(profile, path, text, length, err);
}

static int find_profile(struct estimate_input *input, const struct estimate_options *options, struct error *err)
{
    const char *name = options->gpu ? options->gpu : MACHINE_PROFILE_DEFAULT;
    const struct machine_profile *profile = machine_profile_find(name);

    if (options->profile)
        return estimate_read_profile(&input->profile, options->profile, err);
    if (!profile)
        return error_set(err, EINVAL, "no GPU model '%.60s' is known: see carma calibrate --list, or measure yours",
                         name);
    input->profile = *profile;
    return 0;
}

int estimate_input_read(struct estimate_input *input, struct estimate_options *options, struct error *err)
{
    struct estimate_question *question = &input->question;
    int rc;

    training_default(&question->training);
    question->profile = &input->profile;
    question->declared_bytes = -1;
    question->fold = -1;
    question->quantile_permille = options->quantile_permille;
    rc = find_profile(input, options, err);
    if (rc)
        return rc;
    return options->job_file || options->command_count ? read_job(input, options, err)
                                                       : read_files(input, options->said, err);
}

int estimate_ask(const struct estimate_input *input, const struct estimator *estimator, struct estimate_answer *answer)
{
    struct estimate_question low = input->question;
    struct estimate other;
    int rc;

    *answer = (struct estimate_answer){.estimator = estimator};
    rc = estimate(estimator, &input->question, &answer->estimate, &answer->why_not);
    if (rc)
        return rc;
    answer->known = true;
    answer->low_bytes = answer->estimate.low_bytes;
    low.quantile_permille = 1000 - low.quantile_permille;
    if (!answer->low_bytes && estimate(estimator, &low, &other, &answer->why_not) == 0)
        answer->low_bytes = other.bytes;
    if (!answer->low_bytes || answer->low_bytes > answer->estimate.bytes)
        answer->low_bytes = answer->estimate.bytes;
    return 0;
}
