#include "estimate/learned/features.h"

#include <math.h>

#include "base/memory.h"
#include "base/units.h"
#include "estimate/program/workspace.h"

#define RUNG_BITS 8 /* GPUs of sizes that differ by 0.4 to 0.8% */

#define MOST 1e30f

const char *const feature_names[FEATURE_COUNT] = {
#define X(NAME) #NAME,
    FEATURES(X)
#undef X
};

/* Of the convolutions' forward passes in one step. Bytes are doubles: exact up to 2^53, and they do not overflow. */
struct geometry {
    double count, batch, flops;
    double output_max, output_sum, copy_max, winograd_max, winograd_last, weight_max;
    double channels_max, channels_min, channels_sum, sum_max, sum_min, growth_max, pixels_max;
    double largest_out, largest_in, largest_height, winograd_out, winograd_in, winograd_height;
    double aligned_in, aligned_out, aligned_both, aligned_twice, pointwise, strided, grouped;
    double class_output[WORKSPACE_CLASSES], class_winograd[WORKSPACE_CLASSES];
};

static void keep_extremes(struct geometry *geometry, const struct program_conv *conv, double output, double winograd)
{
    double in = (double)conv->in_channels, out = (double)conv->out_channels;

    if (output > geometry->output_max) {
        geometry->output_max = output;
        geometry->largest_out = out;
        geometry->largest_in = in;
        geometry->largest_height = conv->out[0];
        geometry->pixels_max = (double)conv->batch * workspace_volume(conv, conv->out);
    }
    if (winograd > geometry->winograd_max) {
        geometry->winograd_max = winograd;
        geometry->winograd_out = out;
        geometry->winograd_in = in;
        geometry->winograd_height = conv->out[0];
    }
    geometry->batch = fmax(geometry->batch, (double)conv->batch);
    geometry->channels_max = fmax(geometry->channels_max, out);
    geometry->channels_min = geometry->count ? fmin(geometry->channels_min, out) : out;
    geometry->sum_max = fmax(geometry->sum_max, in + out);
    /* The first convolution reads the image; its few channels tell nothing. */
    if (geometry->count) {
        geometry->sum_min = geometry->count > 1 ? fmin(geometry->sum_min, in + out) : in + out;
        geometry->growth_max = fmax(geometry->growth_max, out / fmax(in, 1));
    }
}

static void add(struct geometry *geometry, const struct program_conv *conv)
{
    double in = (double)conv->in_channels, out = (double)conv->out_channels,
           kernel = workspace_volume(conv, conv->kernel);
    double groups = conv->groups > 1 ? (double)conv->groups : 1;
    double weights = conv->element_bytes * in * out / groups * kernel;
    double output = conv->element_bytes * (double)conv->batch * out * workspace_volume(conv, conv->out);
    double winograd = (double)conv_workspace_bytes(conv, WORKSPACE_WINOGRAD);
    uint32_t class = conv_workspace_class(conv);

    keep_extremes(geometry, conv, output, winograd);
    geometry->count++;
    geometry->flops +=
        2 * weights / fmax(conv->element_bytes, 1) * (double)conv->batch * workspace_volume(conv, conv->out);
    geometry->output_sum += output;
    geometry->copy_max = fmax(geometry->copy_max, (double)conv_workspace_bytes(conv, WORKSPACE_COPY));
    geometry->weight_max = fmax(geometry->weight_max, weights);
    geometry->winograd_last = winograd;
    geometry->channels_sum += out;
    geometry->aligned_in += conv->in_channels % 4 == 0;
    geometry->aligned_out += conv->out_channels % 4 == 0;
    geometry->aligned_both += conv->in_channels % 4 == 0 && conv->out_channels % 4 == 0;
    geometry->aligned_twice += conv->in_channels % 8 == 0 && conv->out_channels % 8 == 0;
    geometry->pointwise += kernel == 1;
    geometry->strided += conv->stride[0] > 1;
    geometry->grouped += groups > 1;
    geometry->class_output[class] += output;
    geometry->class_winograd[class] = fmax(geometry->class_winograd[class], winograd);
}

/* The first step that has convolutions; a pass before the training (step 0) only where there is nothing else. */
static void measure(struct geometry *geometry, const struct program *program)
{
    uint8_t step = 0;

    *geometry = (struct geometry){0};
    for (size_t i = 0; i < program->conv_count && !step; i++)
        if (program->convs[i].pass == CONV_FORWARD)
            step = program->convs[i].step;
    for (size_t i = 0; i < program->conv_count; i++)
        if (program->convs[i].pass == CONV_FORWARD && program->convs[i].step == step)
            add(geometry, &program->convs[i]);
}

static double log1(double number)
{
    return log(fmax(number, 1));
}

static void set_geometry(float *values, const struct geometry *geometry, double base)
{
    double count = fmax(geometry->count, 1), output = fmax(geometry->output_sum, 1);

    values[FEATURE_BATCH] = (float)geometry->batch;
    values[FEATURE_CONVOLUTIONS] = (float)geometry->count;
    values[FEATURE_FLOPS] = (float)log1(geometry->flops);
    values[FEATURE_OUTPUT_MAX] = (float)(geometry->output_max / base);
    values[FEATURE_OUTPUT_SUM] = (float)(geometry->output_sum / base);
    values[FEATURE_COPY_MAX] = (float)(geometry->copy_max / base);
    values[FEATURE_WINOGRAD_MAX] = (float)(geometry->winograd_max / base);
    values[FEATURE_WEIGHT_MAX] = (float)(geometry->weight_max / base);
    values[FEATURE_WINOGRAD_LAST] = (float)(geometry->winograd_last / base);
    values[FEATURE_CHANNELS_MAX] = (float)geometry->channels_max;
    values[FEATURE_CHANNELS_MIN] = (float)geometry->channels_min;
    values[FEATURE_CHANNELS_MEAN] = (float)(geometry->channels_sum / count);
    values[FEATURE_SUM_MAX] = (float)geometry->sum_max;
    values[FEATURE_SUM_MIN] = (float)geometry->sum_min;
    values[FEATURE_GROWTH_MAX] = (float)geometry->growth_max;
    values[FEATURE_LARGEST_OUT] = (float)geometry->largest_out;
    values[FEATURE_LARGEST_IN] = (float)geometry->largest_in;
    values[FEATURE_LARGEST_HEIGHT] = (float)geometry->largest_height;
    values[FEATURE_WINOGRAD_OUT] = (float)geometry->winograd_out;
    values[FEATURE_WINOGRAD_IN] = (float)geometry->winograd_in;
    values[FEATURE_WINOGRAD_HEIGHT] = (float)geometry->winograd_height;
    values[FEATURE_PIXELS_MAX] = (float)log1(geometry->pixels_max);
    values[FEATURE_ALIGNED_IN] = (float)(geometry->aligned_in / count);
    values[FEATURE_ALIGNED_OUT] = (float)(geometry->aligned_out / count);
    values[FEATURE_ALIGNED_BOTH] = (float)(geometry->aligned_both / count);
    values[FEATURE_ALIGNED_TWICE] = (float)(geometry->aligned_twice / count);
    values[FEATURE_POINTWISE] = (float)(geometry->pointwise / count);
    values[FEATURE_STRIDED] = (float)(geometry->strided / count);
    values[FEATURE_GROUPED] = (float)(geometry->grouped / count);
    for (uint32_t i = 0; i < WORKSPACE_CLASSES; i++)
        values[FEATURE_CLASS0 + i] = (float)(geometry->class_output[i] / output);
    for (uint32_t i = WORKSPACE_NARROWING; i < WORKSPACE_CLASSES; i++)
        values[FEATURE_WINOGRAD2 + i - WORKSPACE_NARROWING] = (float)(geometry->class_winograd[i] / base);
}

/* The classes by channels that change from copies to Winograd's algorithm, and all beyond. */
static struct workspace_rule data_rule(void)
{
    struct workspace_rule rule = workspace_rule_default();

    for (uint32_t class = WORKSPACE_BY_CHANNELS + 1; class < WORKSPACE_CLASSES; class ++)
        rule.algorithm[CONV_BACKWARD_DATA][class] = WORKSPACE_WINOGRAD;
    return rule;
}

static struct workspace_rule simple_rule(void)
{
    static const uint32_t many_channels[] = {WORKSPACE_BY_CHANNELS + 5, WORKSPACE_SMALL, WORKSPACE_LARGE_BATCH};
    struct workspace_rule rule = workspace_rule_default();

    for (size_t i = 0; i < array_size(many_channels); i++) {
        rule.algorithm[CONV_FORWARD][many_channels[i]] = WORKSPACE_COPY_READ;
        rule.algorithm[CONV_BACKWARD_DATA][many_channels[i]] = WORKSPACE_COPY_READ;
    }
    return rule;
}

static struct workspace_rule rule_of(enum features_replay replay)
{
    switch (replay) {
    case REPLAY_SIMPLE:
        return simple_rule();
    case REPLAY_DATA:
        return data_rule();
    case REPLAY_NONE:
        return workspace_rule_by_pass(WORKSPACE_NONE, WORKSPACE_NONE, WORKSPACE_NONE);
    case REPLAY_MAIN:
    case REPLAY_COUNT:
        break;
    }
    return workspace_rule_default();
}

static enum features_replay middle_of(const struct replay_result replays[REPLAY_BASES])
{
    for (uint32_t i = 0; i < REPLAY_BASES; i++) {
        int64_t bytes = replays[i].peak_reserved_bytes;
        uint32_t less = 0, more = 0;
        for (uint32_t k = 0; k < REPLAY_BASES; k++) {
            less += replays[k].peak_reserved_bytes < bytes;
            more += replays[k].peak_reserved_bytes > bytes;
        }
        if (less <= REPLAY_BASES / 2 && more <= REPLAY_BASES / 2)
            return (enum features_replay)i;
    }
    return REPLAY_MAIN;
}

static void replay_all(struct features *features, const struct program *program)
{
    for (uint32_t i = 0; i < REPLAY_COUNT; i++) {
        struct replay_options options = {.rule = rule_of((enum features_replay)i)};
        if (i > 0 && program->conv_count == 0)
            features->replays[i] = features->replays[REPLAY_MAIN];
        else
            program_replay(program, &options, &features->replays[i]);
    }
    features->base = middle_of(features->replays);
}

static double input_bytes(const struct program *program)
{
    double bytes = 0;

    for (size_t i = 0; i < program->event_count; i++)
        if (program->events[i].op == PROGRAM_ALLOC && program->events[i].category == MEMORY_INPUT)
            bytes = fmax(bytes, (double)program->events[i].bytes);
    return bytes;
}

static double with_context(int64_t reserved_bytes)
{
    return (double)reserved_bytes + (double)FEATURES_CONTEXT_BYTES;
}

/* Only where the limit is in the way is there anything to replay again. */
static bool is_out_of_memory(const struct features *features, const struct program *program,
                             enum features_replay replay, int64_t limit_bytes)
{
    struct replay_options options = {.rule = rule_of(replay), .limit_bytes = limit_bytes};
    struct replay_result limited;

    if (features->replays[replay].peak_reserved_bytes <= limit_bytes)
        return false;
    program_replay(program, &options, &limited);
    return limited.out_of_memory;
}

/* The sizes of GPUs that are asked: eight bits of their bytes. */
static int64_t rung_at(int64_t bytes)
{
    int shift = 0;

    while (bytes >> shift >= 1 << RUNG_BITS)
        shift++;
    return bytes >> shift << shift;
}

/* Whoever fits on a smaller GPU fits on this one, whatever the allocator would do with the room that is left: what it
 * keeps there may leave less (its blocks are others). Nothing fits where less is allocated at once. */
static bool fits_with_less(const struct features *features, const struct program *program, int64_t limit_bytes)
{
    struct replay_options options = {.rule = rule_of(features->base)};
    struct replay_result limited;

    for (int64_t rung = rung_at(limit_bytes); rung >= features->replays[REPLAY_NONE].peak_allocated_bytes && rung > 0;
         rung = rung_at(rung - 1)) {
        options.limit_bytes = rung;
        program_replay(program, &options, &limited);
        if (!limited.out_of_memory)
            return true;
    }
    return false;
}

static void set_limit(struct features *features, const struct program *program, int64_t limit_bytes)
{
    double base_bytes = with_context(features->replays[features->base].peak_reserved_bytes);
    double none_bytes = with_context(features->replays[REPLAY_NONE].peak_reserved_bytes);
    double most_bytes = with_context(limit_bytes > MIB ? limit_bytes : MIB);
    bool out_of_memory;

    features->base_bytes = fmin(base_bytes, most_bytes);
    out_of_memory = is_out_of_memory(features, program, features->base, limit_bytes);
    features->out_of_memory = out_of_memory && !fits_with_less(features, program, limit_bytes);
    features->values[FEATURE_BASE] = (float)log(features->base_bytes / (double)MIB);
    features->values[FEATURE_FILLING] = (float)log(base_bytes / most_bytes);
    features->values[FEATURE_FILLING_NONE] = (float)log(none_bytes / most_bytes);
    features->values[FEATURE_OUT] = out_of_memory;
    features->values[FEATURE_OUT_NONE] = is_out_of_memory(features, program, REPLAY_NONE, limit_bytes);
}

static void set_replays(struct features *features)
{
    double base = features->base_bytes;

    for (uint32_t i = 0; i < REPLAY_COUNT; i++)
        features->values[FEATURE_MAIN + i] = (float)log(with_context(features->replays[i].peak_reserved_bytes) / base);
    features->values[FEATURE_PEAK] =
        (float)log(with_context(features->replays[features->base].peak_allocated_bytes) / base);
}

/* A capture's convolutions can be of any size. */
static void keep_finite(float values[FEATURE_COUNT])
{
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (!(values[i] >= -MOST && values[i] <= MOST))
            values[i] = values[i] > 0 ? MOST : 0;
}

int64_t features_context_bytes(const struct program *program, const struct machine_profile *profile)
{
    return profile->context_bytes + (program->conv_count ? profile->cudnn_bytes : 0);
}

void features_compute(struct features *features, const struct program *program, const struct machine_profile *profile)
{
    struct geometry geometry;
    double base, convolutions;

    replay_all(features, program);
    measure(&geometry, program);
    set_limit(features, program, profile->memory_bytes - features_context_bytes(program, profile));
    set_replays(features);
    base = features->base_bytes;
    convolutions = fmax(geometry.count, 1);
    set_geometry(features->values, &geometry, base);
    features->values[FEATURE_PARAMETERS] = (float)((double)program->parameter_bytes / base);
    features->values[FEATURE_INPUT] = (float)(input_bytes(program) / base);
    features->values[FEATURE_ACTIVATIONS] =
        (float)(4.0 * (double)program->activation_elements * (double)program->batch_size / base);
    features->values[FEATURE_LAYERS] = (float)program->layers;
    features->values[FEATURE_NORMS] = (float)(program->norms / convolutions);
    features->values[FEATURE_DROPOUTS] = (float)(program->dropouts / convolutions);
    keep_finite(features->values);
}
