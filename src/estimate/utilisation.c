#include "estimate/utilisation.h"

#include <math.h>
#include <stdio.h>

#include "estimate/learned/correction.h"
#include "estimate/estimate.h"
#include "estimate/learned/trees.h"

#define A100_FLOPS_PER_S 19.5e12
#define A100_BYTES_PER_S 1555e9
#define A100_SM_MHZ      (108.0 * 1410.0)
#define BACKWARD         3 /* forward and backward are three times the forward pass's operations */
#define FOLDS            5

const char *const utilisation_feature_names[UTILISATION_COUNT] = {
#define X(NAME) #NAME,
    UTILISATION_FEATURES(X)
#undef X
};

static double log1(double number)
{
    return log(fmax(number, 1));
}

struct work {
    double flops, moved_bytes, kernels, input_bytes;
    double conv_flops, channels, channels_in, pixels; /* the last three times conv_flops */
};

static void count_events(struct work *work, const struct program *program, uint8_t step)
{
    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->op != PROGRAM_ALLOC || event->step != step)
            continue;
        if (event->category == MEMORY_INPUT)
            work->input_bytes = fmax(work->input_bytes, (double)event->bytes);
        work->moved_bytes += (double)event->bytes;
        work->kernels++;
    }
}

static void count_convolutions(struct work *work, const struct program *program, uint8_t step)
{
    for (size_t i = 0; i < program->conv_count; i++) {
        const struct program_conv *conv = &program->convs[i];
        double pixels = (double)conv->batch, flops;
        if (conv->pass != CONV_FORWARD || conv->step != step)
            continue;
        for (uint8_t d = 0; d < conv->rank; d++)
            pixels *= conv->out[d];
        flops = 2 * pixels * (double)conv->in_channels * (double)conv->out_channels;
        for (uint8_t d = 0; d < conv->rank; d++)
            flops *= conv->kernel[d];
        flops /= conv->groups > 1 ? (double)conv->groups : 1;
        work->conv_flops += flops;
        work->channels += flops * (double)conv->out_channels;
        work->channels_in += flops * (double)conv->in_channels;
        work->pixels += flops * log1(pixels);
    }
}

static struct work work_of(const struct program *program)
{
    struct work work = {.flops = (double)program->flops};
    uint8_t step = program_steady_step(program);

    count_events(&work, program, step);
    count_convolutions(&work, program, step);
    return work;
}

static double arithmetic_s(const struct work *work)
{
    return BACKWARD * work->flops / A100_FLOPS_PER_S;
}

/* Written once and read about twice. */
static double transfer_s(const struct work *work)
{
    return 3 * work->moved_bytes / A100_BYTES_PER_S;
}

void utilisation_features_compute(float values[UTILISATION_COUNT], const struct program *program)
{
    struct work work = work_of(program);
    double roofline_s = arithmetic_s(&work) + transfer_s(&work), kernels = fmax(work.kernels, 1);
    double conv_flops = fmax(work.conv_flops, 1);

    values[UTILISATION_U_FLOPS] = (float)log1(work.flops);
    values[UTILISATION_U_MOVED] = (float)log1(work.moved_bytes);
    values[UTILISATION_U_KERNELS] = (float)log(kernels);
    values[UTILISATION_U_FLOPS_EACH] = (float)log1(work.flops / kernels);
    values[UTILISATION_U_MOVED_EACH] = (float)log1(work.moved_bytes / kernels);
    values[UTILISATION_U_INTENSITY] = (float)log((work.flops + 1) / (work.moved_bytes + 1));
    values[UTILISATION_U_ROOFLINE] = (float)log(roofline_s + 1e-9);
    values[UTILISATION_U_ROOFLINE_EACH] = (float)log((roofline_s + 1e-9) / kernels);
    values[UTILISATION_U_BATCH] = (float)log1((double)program->batch_size);
    values[UTILISATION_U_PARAMETERS] = (float)log1((double)program->parameter_bytes);
    values[UTILISATION_U_ACTIVATIONS] = (float)log1((double)program->activation_elements * (double)program->batch_size);
    values[UTILISATION_U_INPUT] = (float)log1(work.input_bytes);
    values[UTILISATION_U_LAYERS] = (float)program->layers;
    values[UTILISATION_U_CONVOLUTIONS] = (float)program->convolutions;
    values[UTILISATION_U_LINEARS] = (float)program->linears;
    values[UTILISATION_U_NORMS] = (float)program->norms;
    values[UTILISATION_U_DROPOUTS] = (float)program->dropouts;
    values[UTILISATION_U_FUNCTIONS] = (float)program->activations;
    values[UTILISATION_U_ATTENTIONS] = (float)program->attentions;
    values[UTILISATION_U_CHANNELS] = (float)(work.channels / conv_flops);
    values[UTILISATION_U_CHANNELS_IN] = (float)(work.channels_in / conv_flops);
    values[UTILISATION_U_PIXELS] = (float)(work.pixels / conv_flops);
}

/* How long the kernels take on this GPU, as a multiple of the A100's. */
static double slowdown(const struct machine_profile *profile, const struct program *program)
{
    struct work work = work_of(program);
    double arithmetic = arithmetic_s(&work), transfer = transfer_s(&work), total = arithmetic + transfer;
    double speed = (double)profile->sm_count * profile->sm_clock_mhz / A100_SM_MHZ;
    double bandwidth = profile->bandwidth_gbps * 1e9 / A100_BYTES_PER_S;

    if (total <= 0 || speed <= 0 || bandwidth <= 0)
        return 1;
    return (arithmetic / speed + transfer / bandwidth) / total;
}

/* -1: no trees for it. */
static int32_t permille_of(struct model model, const char *family, const char *what, int32_t fold,
                           const float values[UTILISATION_COUNT], double slower)
{
    struct trees trees;
    char name[40];
    double activity;

    if (fold < 0)
        snprintf(name, sizeof name, "all/%s/%s", family, what);
    else
        snprintf(name, sizeof name, "fold%d/%s/%s", (int)fold % FOLDS, family, what);
    if (trees_find(&trees, model, name))
        return -1;
    activity = fmin(fmax(trees_sum(&trees, values, UTILISATION_COUNT), 0), 1);
    activity = activity * slower / (activity * slower + 1 - activity);
    return (int32_t)(1000 * activity + 0.5);
}

/* No run with attention has its SM activity recorded: there are no trees for the last two. */
static const char *const families[CORRECTION_FAMILY_COUNT] = {
    [CORRECTION_MLP] = "mlp",
    [CORRECTION_CNN] = "cnn",
    [CORRECTION_TRANSFORMER] = "transformer",
    [CORRECTION_OTHER] = "other",
};

void estimate_utilisation(const struct estimate_question *question, const struct program *program,
                          struct estimate *result)
{
    struct model model = model_find("utilisation");
    float values[UTILISATION_COUNT];
    const char *family = families[correction_family_of(program)];
    double slower;

    result->family = family;
    result->parameter_bytes = program->parameter_bytes;
    if (!trees_are_of(model, utilisation_feature_names, UTILISATION_COUNT))
        return;
    utilisation_features_compute(values, program);
    slower = slowdown(question->profile, program);
    result->smact_permille = permille_of(model, family, "smact", question->fold, values, slower);
    result->smocc_permille = permille_of(model, family, "smocc", question->fold, values, slower);
}
