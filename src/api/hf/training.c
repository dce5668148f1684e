#include "api/hf/training.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/hf/config.h"
#include "api/hf/lengths.h"
#include "api/spec.h"
#include "base/memory.h"
#include "estimate/estimate.h"

#define SHARDED_DOUBT 150 /* permille: which library shards, and its settings, are assumed */
#define PACKED_DOUBT  100 /* the kernels of 4-bit weights are assumed */

/* More of the 98th percentile, by what is assumed (docs/estimation.md has the rows). */
#define VARIED_SPREAD  65 /* the order of the lengths */
#define PACKED_SPREAD  100
#define SHARDED_SPREAD 50

static int take_training(const struct job_spec *spec, const char *name, struct training *training,
                         struct method *method, struct error *err)
{
    int rc;

    training_default(training);
    training->optimizer = OPTIMIZER_ADAMW;
    training->batch_size = spec->batch_size;
    method_default(method);
    if (spec->batch_size < 1) /* any guess would be wrong by factors */
        return error_set(err, ENOTSUP, "%s does not say the batch size: give it with --batch-size", name);
    if ((spec->optimizer && (rc = optimizer_parse(spec->optimizer, &training->optimizer, err))) ||
        (spec->precision && (rc = precision_parse(spec->precision, &training->precision, err))) ||
        (spec->method && (rc = method_parse(spec->method, method, err))))
        return rc;
    if (!method->world)
        method->world = spec->gpus == SPEC_NO_COUNT || spec->gpus == 0 ? 1 : spec->gpus;
    return 0;
}

/* Leaves *lengths empty where nothing is said of them. */
static int take_lengths(const struct job_spec *spec, const struct transformer *transformer, struct method *method,
                        struct lengths *lengths, struct error *err)
{
    const char *name = spec->lengths_name ? spec->lengths_name : "the list of lengths";
    int rc;

    if (!spec->lengths)
        return 0;
    if (transformer->kind == TRANSFORMER_VISION)
        return error_set(err, EINVAL, "%s: images are all alike: leave --lengths out", name);
    if (method->mean_length)
        return error_set(err, EINVAL, "%s says what mean_length=%" PRId64 " assumes: leave one of them out", name,
                         method->mean_length);
    if ((rc = hf_lengths_read(lengths, name, spec->lengths, err)) == 0)
        method->lengths = lengths;
    return rc;
}

/* In tokens: as is said, else as the model has positions; no more than the usual, or than the longest of a list. A list
 * of samples that are all alike is of no further use. */
static int take_sequence(const struct job_spec *spec, const struct transformer *transformer, struct method *method,
                         struct error *err)
{
    const struct lengths *lengths = method->lengths;
    bool said = spec->sequence_length > 0;
    int64_t most = lengths ? lengths_longest(lengths) : said ? INT64_MAX : SEQUENCE_DEFAULT;
    int64_t wanted = said ? spec->sequence_length : transformer->positions;

    method->sequence = wanted > 0 && wanted < most ? wanted : most;
    if (!lengths)
        return 0;
    if (method->drop_longer && lengths_within(lengths, method->sequence) == 0)
        return error_set(err, EINVAL,
                         "drop_longer leaves out all listed samples: the shortest has %" PRId64
                         " tokens; say a longer --sequence-length",
                         lengths_shortest(lengths));
    if (lengths_shortest(lengths) == lengths_longest(lengths))
        method->lengths = NULL;
    return 0;
}

static void describe(struct capture *capture, const struct training *training, const struct transformer *transformer,
                     const struct method *method)
{
    double parameters = (double)transformer_parameters(transformer);

    snprintf(capture->model, sizeof capture->model, "%s of %.4g million parameters", transformer->family,
             parameters / 1e6);
    capture->batch_size = training->batch_size;
    capture->optimizer = training->optimizer;
    capture->optimizer_known = true;
    capture->precision = training->precision;
    capture->doubt_permille =
        (method->world > 1 ? SHARDED_DOUBT : 0) + (method->tuning == TUNING_QLORA ? PACKED_DOUBT : 0);
    capture->spread_permille = (method_varies(method) ? VARIED_SPREAD : 0) +
                               (method->tuning == TUNING_QLORA ? PACKED_SPREAD : 0) +
                               (method->sharding != SHARDING_NONE ? SHARDED_SPREAD : 0);
}

int hf_training_capture(struct capture *capture, struct transformer *transformer, struct method *method,
                        const struct job_spec *spec, int64_t *events_left, struct error *err)
{
    const char *name = spec->hf_config_name ? spec->hf_config_name : "the configuration";
    CLEANUP(lengths_release) struct lengths lengths = {0};
    struct training training;
    int64_t events;
    bool reserved; /* else the replay of this one program has to do */
    int rc;

    *capture = (struct capture){0};
    if ((rc = take_training(spec, name, &training, method, err)) ||
        (rc = hf_config_read(transformer, name, spec->hf_config, strlen(spec->hf_config), err)))
        return rc;
    if ((rc = take_lengths(spec, transformer, method, &lengths, err)) ||
        (rc = take_sequence(spec, transformer, method, err)))
        return rc;
    if ((rc = transformer_check(transformer, &training, method, err))) {
        error_prefix(err, "%s", name);
        return rc;
    }
    events = transformer_events(transformer, &training, method);
    if (events > PROGRAM_MAX_EVENTS)
        return error_set(err, EINVAL,
                         "%s: the model's training steps have %" PRId64 " events, more than %d: it has too many layers",
                         name, events, PROGRAM_MAX_EVENTS);
    reserved = transformer->kind != TRANSFORMER_VISION && events * (1 + RESERVE_PROGRAMS) <= *events_left;
    if ((rc = estimate_spend(events_left, reserved ? events * (1 + RESERVE_PROGRAMS) : events, name, err)))
        return rc;
    transformer_lower(&capture->program, transformer, &training, method);
    if (reserved)
        transformer_reserve(capture->reserve, transformer, &training, method);
    describe(capture, &training, transformer, method);
    method->lengths = NULL; /* what follows asks for the sequence alone */
    return 0;
}
