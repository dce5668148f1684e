#include "estimate/step_time.h"

#include <math.h>

#include "estimate/gpu_peaks.h"

#define TENSOR_PART 0.40 /* of convolutions by tensor cores, and by others */
#define CUDA_PART   0.60
#define GEMM_PART   0.70
#define MEMORY_PART 0.75
#define FLOOR_S     8e-6
#define HOST_S      50e-6

/* Elements of a result that keep one SM busy: a tile of a convolution or a matrix product, a block of another kernel.
 */
#define TILE_ELEMENTS  2048
#define BLOCK_ELEMENTS 256

#define TRAFFIC  3 /* a result is written once and read twice */
#define LAYOUT   3 /* tensor cores want channels last: tensors are turned around before and after */
#define BACKWARD 3 /* both passes have three times the forward's operations */

/* Measured over computed figures, in permille: the quantiles 0.1, 0.5 and 0.9 of the 57 steps of data/step_times.csv,
 * of which 30 have activities (bench/step_time). Steps that wait for images or for the host are among them. */
static const struct spread_figure step_factor = {.low = 890, .median = 1330, .high = 3040};
static const struct spread_figure smact_factor = {.low = 630, .median = 820, .high = 2190};
static const struct spread_figure dram_factor = {.low = 390, .median = 580, .high = 1020};

struct rates {
    double fp32, tf32, half; /* operations a second */
    double bytes;            /* a second */
    double sms;
};

struct sums {
    double busy_s, covered_s, traffic_bytes;
    uint64_t kernels;
    double conv_flops; /* of the forward pass */
};

static void add(struct sums *sums, const struct rates *rates, double seconds, double bytes, double tiles)
{
    seconds = fmax(fmax(seconds, bytes / rates->bytes / MEMORY_PART), FLOOR_S);
    sums->busy_s += seconds;
    sums->covered_s += seconds * fmin(1, tiles / rates->sms);
    sums->traffic_bytes += bytes;
    sums->kernels++;
}

static double pixels_of(const int32_t sizes[3], const struct program_conv *conv)
{
    double pixels = (double)conv->batch;

    for (uint8_t d = 0; d < conv->rank; d++)
        pixels *= sizes[d];
    return pixels;
}

static void add_conv(struct sums *sums, const struct rates *rates, const struct program_conv *conv)
{
    double out = pixels_of(conv->out, conv), in = pixels_of(conv->in, conv) * (double)conv->in_channels;
    double weight = (double)conv->in_channels * (double)conv->out_channels, flops, per_s, result, turns = LAYOUT;
    double tensor_cores = conv->element_bytes < 4 ? rates->half : rates->tf32;

    weight /= conv->groups > 1 ? (double)conv->groups : 1;
    for (uint8_t d = 0; d < conv->rank; d++)
        weight *= conv->kernel[d];
    flops = 2 * weight * (conv->transposed ? pixels_of(conv->in, conv) : out);
    out *= (double)conv->out_channels;
    per_s = TENSOR_PART * tensor_cores;
    if (tensor_cores <= 0 || (conv->groups > 1 && conv->groups == conv->in_channels)) { /* depthwise ones cannot */
        per_s = CUDA_PART * rates->fp32;
        turns = 1;
    }
    result = conv->pass == CONV_FORWARD ? out : conv->pass == CONV_BACKWARD_DATA ? in : weight;
    if (conv->pass == CONV_FORWARD)
        sums->conv_flops += flops;
    add(sums, rates, flops / per_s, turns * (in + out + weight) * conv->element_bytes,
        conv->pass == CONV_BACKWARD_WEIGHT ? rates->sms : result / TILE_ELEMENTS);
}

/* A convolution follows its result's allocation, which is then no operator of its own. */
static bool is_result_of_conv(const struct program *program, size_t event)
{
    return event + 1 < program->event_count && program->events[event + 1].op == PROGRAM_CONV;
}

static void add_operators(struct sums *sums, const struct rates *rates, const struct program *program, double element)
{
    uint8_t step = program_steady_step(program);

    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->step != step)
            continue;
        if (event->op == PROGRAM_CONV)
            add_conv(sums, rates, &program->convs[event->tensor]);
        else if (event->op == PROGRAM_ALLOC && event->category != MEMORY_WORKSPACE && event->category != MEMORY_INPUT &&
                 event->phase != PHASE_OPTIMIZER && !is_result_of_conv(program, i))
            add(sums, rates, 0, TRAFFIC * (double)event->bytes, (double)event->bytes / element / BLOCK_ELEMENTS);
    }
}

/* Reads and writes of the parameters' bytes in one step of the optimizer. */
static double optimizer_traffic(enum optimizer optimizer)
{
    switch (optimizer) {
    case OPTIMIZER_SGD:
        return 3;
    case OPTIMIZER_MOMENTUM:
        return 5;
    default: /* Adam's: gradient, parameter and two states read, all but the gradient written */
        return 7;
    }
}

static double gemm_peak(const struct rates *rates, enum precision precision)
{
    switch (precision) {
    case PRECISION_FP32:
        return rates->fp32;
    case PRECISION_TF32:
        return fmax(rates->tf32, rates->fp32);
    default:
        return rates->half;
    }
}

static struct spread_figure around(double computed, const struct spread_figure *factor, double most)
{
    return (struct spread_figure){.low = (int64_t)fmin(computed * (double)factor->low / 1000, most),
                                  .median = (int64_t)fmin(computed * (double)factor->median / 1000, most),
                                  .high = (int64_t)fmin(computed * (double)factor->high / 1000, most)};
}

struct step_time step_time_of(const struct program *program, const struct training *training,
                              const struct machine_profile *profile)
{
    const struct gpu_peaks *peaks = gpu_peaks_find(profile->gpu);
    double element = training->precision == PRECISION_FP32 || training->precision == PRECISION_TF32 ? 4 : 2;
    double gemm_s, step_s;
    struct sums sums = {0};

    if (!peaks || profile->bandwidth_gbps <= 0 || profile->sm_count <= 0)
        return (struct step_time){0};
    const struct rates rates = {.fp32 = peaks->fp32 * 1e11,
                                .tf32 = peaks->tf32 * 1e11,
                                .half = peaks->half * 1e11,
                                .bytes = profile->bandwidth_gbps * 1e9,
                                .sms = profile->sm_count};
    add_operators(&sums, &rates, program, element);
    if (sums.kernels == 0)
        return (struct step_time){0};
    gemm_s = BACKWARD * fmax((double)program->flops - sums.conv_flops, 0) / gemm_peak(&rates, training->precision) /
             GEMM_PART;
    sums.busy_s += gemm_s;
    sums.covered_s += gemm_s;
    add(&sums, &rates, 0, optimizer_traffic(training->optimizer) * (double)program->parameter_bytes, rates.sms);
    step_s = fmax(sums.busy_s, (double)sums.kernels * HOST_S);
    return (struct step_time){
        .known = true,
        .step_ns = around(step_s * 1e9, &step_factor, 1e18),
        .smact_permille = around(1000 * sums.covered_s / step_s, &smact_factor, 1000),
        .dram_permille = around(1000 * sums.traffic_bytes / rates.bytes / step_s, &dram_factor, 1000),
    };
}
