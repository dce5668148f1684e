/* The replay as an estimator: the training's effect on the caching allocator, and the machine's context. Trees trained
 * on measured runs correct it for cuDNN's choice of workspace. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/learned/correction.h"
#include "estimate/counts.h"

/* Permille. Understood in full, of a kind that was measured: 950. */
#define SURE            950
#define OUTSIDE_EACH    10 /* a feature beyond the training's range */
#define OUTSIDE_MOST    150
#define MIXED_PRECISION 200 /* no run with autocast was measured */
#define OTHER_OPTIMIZER 50  /* nor one with another optimizer than Adam: its states are known, its temporaries read */
#define OTHER_FAMILY    150
#define DRIVER_POOL     150 /* what it holds beyond the tensors is assumed */
#define UNKNOWN_MOST    400 /* all layers unknown, or without shapes */
#define STATES_ONLY     200
#define LEAST           100

static void fill_parts(struct estimate *estimate, const struct replay_result *replay, int64_t context_bytes)
{
    int64_t known = 0;

    estimate->has_parts = true;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++) {
        estimate->parts[i] = replay->at_peak[i];
        known += replay->at_peak[i];
    }
    estimate->allocated_bytes = replay->peak_allocated_bytes;
    estimate->fragmentation_bytes = replay->peak_reserved_bytes - known;
    estimate->context_bytes = context_bytes;
    estimate->correction_bytes = estimate->median_bytes - replay->peak_reserved_bytes - context_bytes;
    estimate->peak_event = replay->peak_event;
}

/* Of a job that fits, though with all the workspaces that cuDNN would choose it does not: of what these take beyond the
 * rest, the share that there is room for (docs/estimation.md compares it with 22 such runs on an A100, and three on
 * another card). A negative number: it is no such job. */
static double crowded_bytes(const struct features *features, double limit_bytes)
{
    double wanted_bytes = (double)features->replays[features->base].peak_reserved_bytes;
    double least_bytes = (double)features->replays[REPLAY_NONE].peak_reserved_bytes,
           room_bytes = limit_bytes - least_bytes;

    if (features->out_of_memory || wanted_bytes <= limit_bytes || room_bytes < 0)
        return -1;
    return least_bytes + room_bytes * room_bytes / (wanted_bytes - least_bytes);
}

/* Its need on this GPU. Near its limit the allocator gives cached segments back, and cuDNN does with less. So a job
 * that fits at all fits in the GPU's memory. */
static double median_of(const struct features *features, const struct correction *correction, double context_bytes,
                        double memory_bytes)
{
    double reserved_bytes = (double)features->replays[features->base].peak_reserved_bytes;
    double crowded = crowded_bytes(features, memory_bytes - context_bytes), corrected_bytes;

    if (!correction->trained) {
        corrected_bytes = fmax(reserved_bytes + context_bytes + (double)correction->offset_bytes, 0);
        return features->out_of_memory ? fmax(corrected_bytes, memory_bytes + 1) : fmin(corrected_bytes, memory_bytes);
    }
    if (crowded >= 0)
        return crowded + context_bytes;
    corrected_bytes = features->base_bytes * exp(correction->ln_ratio) - (double)FEATURES_CONTEXT_BYTES + context_bytes;
    if (features->out_of_memory)
        return fmax(fmax(corrected_bytes, reserved_bytes + context_bytes), memory_bytes + 1);
    return fmin(fmax(corrected_bytes, context_bytes), memory_bytes);
}

static int32_t share_of(uint32_t count, size_t total, int32_t most)
{
    return total ? (int32_t)((uint64_t)count * (uint64_t)most / total) : 0;
}

static int32_t confidence_of(const struct estimate_question *question, const struct correction *correction)
{
    const struct training *training = &question->training;
    int32_t outside = (int32_t)correction->outside * OUTSIDE_EACH, confidence = SURE;

    confidence -= outside < OUTSIDE_MOST ? outside : OUTSIDE_MOST;
    if (training->precision == PRECISION_AMP)
        confidence -= MIXED_PRECISION;
    if (training->allocator.driver)
        confidence -= DRIVER_POOL;
    if (training->optimizer != OPTIMIZER_ADAM && training->optimizer != OPTIMIZER_ADAMW)
        confidence -= OTHER_OPTIMIZER;
    if (correction->family == CORRECTION_OTHER || (correction->family == CORRECTION_CNN && !correction->trained))
        confidence -= OTHER_FAMILY;
    if (question->capture) {
        confidence -= question->capture->doubt_permille;
    } else {
        confidence -= share_of(question->layers->unknown, question->layers->count, UNKNOWN_MOST);
        confidence -= share_of(question->layers->shapeless, question->layers->count, UNKNOWN_MOST);
    }
    return confidence > LEAST ? confidence : LEAST;
}

/* Of what a configuration leaves open, beyond what the measured runs have. */
static double widened(const struct estimate_question *question, int32_t quantile_permille)
{
    double spread = question->capture ? question->capture->spread_permille / 1000.0 : 0;

    return pow(1 + spread, (quantile_permille - 500) / 480.0);
}

/* A configuration's reserve follows from its tensors, so that a larger training never needs less: what the
 * allocator does with just these sizes is chance. */
static void take_reserve(struct features *features, const struct capture *capture, int64_t limit_bytes)
{
    struct replay_result *replay = &features->replays[features->base];
    const struct reserve *reserve = capture ? &capture->reserve[capture->program.allocator.expandable] : NULL;

    if (!reserve || !reserve->known || !allocator_settings_usual(&capture->program.allocator))
        return;
    replay->peak_reserved_bytes =
        replay->peak_tensor_bytes +
        (int64_t)(reserve->of_held * (double)replay->held_tensor_bytes +
                  reserve->of_passing * (double)(replay->peak_tensor_bytes - replay->held_tensor_bytes) +
                  reserve->bytes);
    features->out_of_memory = replay->peak_tensor_bytes > limit_bytes;
}

static int answer_program(const struct estimate_question *question, const struct program *program,
                          struct estimate *estimate)
{
    const struct machine_profile *profile = question->profile;
    int64_t context_bytes = features_context_bytes(program, profile);
    struct features features;
    struct correction correction;
    double median_bytes, bytes;

    features_compute(&features, program, profile);
    take_reserve(&features, question->capture, profile->memory_bytes - context_bytes);
    correction_compute(&correction, program, &features, question->fold);
    median_bytes = median_of(&features, &correction, (double)context_bytes, (double)profile->memory_bytes);
    bytes = median_bytes * correction_quantile_factor(&correction, question->quantile_permille, question->fold) *
            widened(question, question->quantile_permille);
    /* The margin covers the replay's error; it does not drive a job that fits off the GPU. */
    if (median_bytes <= (double)profile->memory_bytes)
        bytes = fmin(bytes, (double)profile->memory_bytes);
    estimate->median_bytes = (int64_t)median_bytes;
    estimate->bytes = (int64_t)bytes;
    estimate->low_bytes =
        (int64_t)(median_bytes *
                  correction_quantile_factor(&correction, 1000 - question->quantile_permille, question->fold) *
                  widened(question, 1000 - question->quantile_permille));
    estimate->confidence_permille = confidence_of(question, &correction);
    fill_parts(estimate, &features.replays[features.base], context_bytes);
    estimate_utilisation(question, program, estimate);
    return 0;
}

/* Of a summary without shapes only the parameters are known, and so the memory of parameters, gradients and optimizer:
 * less than the job needs. */
static int answer_states(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    static const double states[OPTIMIZER_COUNT] = {
        /* states and foreach's temporaries, in copies of the parameters (optimizer.c) */
        [OPTIMIZER_MOMENTUM] = 1,    [OPTIMIZER_ADAM] = 3,         [OPTIMIZER_ADAMW] = 3,
        [OPTIMIZER_ADAMW_FUSED] = 2, [OPTIMIZER_ADAMW_8BIT] = 0.5,
    };
    struct layer_counts counts;
    double bytes;
    int rc = layer_counts_of(question, &counts, err);

    if (rc)
        return rc;
    if (counts.parameters <= 0)
        return error_set(err, ENOTSUP, "replay: no layer of the summary has a shape or parameters: give a capture");
    bytes =
        4 * counts.parameters * (2 + states[question->training.optimizer]) + (double)question->profile->context_bytes;
    rc = estimate_from_formula("replay", bytes, estimate, err);
    if (rc)
        return rc;
    estimate->confidence_permille = STATES_ONLY;
    estimate->lower_bound = true;
    snprintf(
        estimate->warning, sizeof estimate->warning,
        "the summary has no shapes: parameters, gradients and optimizer alone; give a capture for the activations");
    return 0;
}

static bool has_shapes(const struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].container && list->items[i].shape_known)
            return true;
    return false;
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    CLEANUP(program_release) struct program program = {0};
    int rc;

    if (question->capture)
        return answer_program(question, &question->capture->program, estimate);
    if (!question->layers)
        return error_set(err, ENOTSUP, "replay needs the model: give its summary or a capture");
    if (!has_shapes(question->layers))
        return answer_states(question, estimate, err);
    rc = program_lower(&program, question->layers, &question->training, err);
    if (rc)
        return rc;
    program.allocator = question->training.allocator;
    rc = answer_program(question, &program, estimate);
    if (question->layers->unknown || question->layers->shapeless)
        snprintf(estimate->warning, sizeof estimate->warning,
                 "layers of a type not known: %" PRIu32 ", without a shape: %" PRIu32 "; the estimate may be too low",
                 question->layers->unknown, question->layers->shapeless);
    return rc;
}

const struct estimator estimator_replay = {
    "replay",
    "a replay of the training's allocations, corrected for cuDNN's workspace by trees (data/models/replay.md)", answer};
