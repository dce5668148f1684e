#include "estimate/program/workspace.h"

#include <math.h>
#include <stdbool.h>

#define ACCESS_BYTES 16 /* of one load: channels are padded to as many as fit */

/* The upper bounds of the classes by channels, input and output together. Networks of one width up to 40 fit copies;
 * wider ones fit Winograd's algorithm, up to about 275. */
static const double class_limits[] = {84, 130, 275, 420, 700};

#define NARROWING      4
#define SMALL_CHANNELS 420
#define SMALL_PIXELS   16
#define WIDE_CHANNELS  700
#define LARGE_BATCH    40

/* The figures are products of numbers of unknown origin. They are worked out in floating point, which does not
 * overflow, and cut at a size that no GPU has. Up to 2^53 they are exact. */
static int64_t bounded(double bytes)
{
    return bytes < (double)PROGRAM_MAX_BYTES ? (int64_t)bytes : PROGRAM_MAX_BYTES;
}

static int64_t channels_together(const struct program_conv *conv)
{
    return conv->element_bytes && conv->element_bytes < ACCESS_BYTES ? ACCESS_BYTES / conv->element_bytes : 1;
}

static bool is_aligned(const struct program_conv *conv, int64_t channels)
{
    return channels % channels_together(conv) == 0;
}

static double padded(const struct program_conv *conv, int64_t channels)
{
    double together = (double)channels_together(conv);

    return ceil((double)channels / together) * together;
}

double workspace_volume(const struct program_conv *conv, const int32_t size[3])
{
    double product = 1;

    for (uint8_t i = 0; i < conv->rank; i++)
        product *= size[i];
    return product;
}

static bool is_winograd(const struct program_conv *conv)
{
    return conv->rank == 2 && conv->groups <= 1 && conv->kernel[0] == 3 && conv->kernel[1] == 3 &&
           conv->stride[0] == 1 && conv->stride[1] == 1;
}

static int64_t winograd(const struct program_conv *conv, double tile)
{
    double tiles = (double)conv->batch, in = (double)conv->in_channels, out = (double)conv->out_channels;

    if (!is_winograd(conv))
        return 0;
    for (uint8_t i = 0; i < conv->rank; i++)
        tiles *= ceil(conv->out[i] / tile);
    return bounded(conv->element_bytes * (tile + 2) * (tile + 2) * (tiles * (in + out) + in * out));
}

/* One channel lies the same in both layouts. */
static double copy_bytes(const struct program_conv *conv, int64_t channels, const int32_t size[3])
{
    if (channels <= 1)
        return 0;
    return (double)conv->element_bytes * (double)conv->batch * padded(conv, channels) * workspace_volume(conv, size);
}

static int64_t copy(const struct program_conv *conv, bool in, bool out)
{
    double groups = conv->groups > 1 ? (double)conv->groups : 1;
    double weights = padded(conv, conv->in_channels) * padded(conv, conv->out_channels) / groups;

    return bounded((in ? copy_bytes(conv, conv->in_channels, conv->in) : 0) +
                   (out ? copy_bytes(conv, conv->out_channels, conv->out) : 0) +
                   conv->element_bytes * weights * workspace_volume(conv, conv->kernel));
}

static int64_t copy_read(const struct program_conv *conv)
{
    return copy(conv, conv->pass != CONV_BACKWARD_DATA || !is_aligned(conv, conv->in_channels),
                conv->pass != CONV_FORWARD || !is_aligned(conv, conv->out_channels));
}

static bool is_pointwise(const struct program_conv *conv)
{
    for (uint8_t i = 0; i < conv->rank; i++)
        if (conv->kernel[i] != 1 || conv->stride[i] != 1)
            return false;
    return conv->groups <= 1;
}

uint32_t conv_workspace_class(const struct program_conv *conv)
{
    double channels = (double)conv->in_channels + (double)conv->out_channels;
    uint32_t size = 0;

    if (is_pointwise(conv))
        return WORKSPACE_POINTWISE;
    if (!is_winograd(conv))
        return WORKSPACE_OTHER;
    if (conv->in_channels / NARROWING >= conv->out_channels)
        return WORKSPACE_NARROWING;
    if (channels > SMALL_CHANNELS && conv->out[0] <= SMALL_PIXELS)
        return WORKSPACE_SMALL;
    if (channels > WIDE_CHANNELS && conv->batch > LARGE_BATCH)
        return WORKSPACE_LARGE_BATCH;
    while (size < sizeof class_limits / sizeof *class_limits && channels > class_limits[size])
        size++;
    return WORKSPACE_BY_CHANNELS + size;
}

struct workspace_rule workspace_rule_by_pass(enum workspace_algorithm forward, enum workspace_algorithm backward_data,
                                             enum workspace_algorithm backward_weight)
{
    struct workspace_rule rule;

    for (uint32_t class = 0; class < WORKSPACE_CLASSES; class ++) {
        rule.algorithm[CONV_FORWARD][class] = (uint8_t)forward;
        rule.algorithm[CONV_BACKWARD_DATA][class] = (uint8_t)backward_data;
        rule.algorithm[CONV_BACKWARD_WEIGHT][class] = (uint8_t)backward_weight;
    }
    return rule;
}

struct workspace_rule workspace_rule_default(void)
{
    struct workspace_rule rule = workspace_rule_by_pass(WORKSPACE_COPY_READ, WORKSPACE_COPY_READ, WORKSPACE_COPY);

    for (uint32_t pass = CONV_FORWARD; pass <= CONV_BACKWARD_WEIGHT; pass++)
        rule.algorithm[pass][WORKSPACE_POINTWISE] = WORKSPACE_NONE;
    rule.algorithm[CONV_FORWARD][WORKSPACE_OTHER] = WORKSPACE_NONE;
    rule.algorithm[CONV_FORWARD][WORKSPACE_NARROWING] = WORKSPACE_NONE;
    rule.algorithm[CONV_FORWARD][WORKSPACE_BY_CHANNELS] = WORKSPACE_NONE;
    rule.algorithm[CONV_FORWARD][WORKSPACE_BY_CHANNELS + 1] = WORKSPACE_COPY;
    rule.algorithm[CONV_BACKWARD_DATA][WORKSPACE_NARROWING] = WORKSPACE_COPY_INPUT;
    rule.algorithm[CONV_BACKWARD_DATA][WORKSPACE_BY_CHANNELS + 1] = WORKSPACE_WINOGRAD;
    rule.algorithm[CONV_BACKWARD_DATA][WORKSPACE_BY_CHANNELS + 2] = WORKSPACE_WINOGRAD;
    rule.algorithm[CONV_BACKWARD_DATA][WORKSPACE_BY_CHANNELS + 5] = WORKSPACE_COPY;
    rule.algorithm[CONV_BACKWARD_DATA][WORKSPACE_SMALL] = WORKSPACE_WINOGRAD;
    rule.algorithm[CONV_FORWARD][WORKSPACE_LARGE_BATCH] = WORKSPACE_COPY_INPUT;
    rule.algorithm[CONV_BACKWARD_DATA][WORKSPACE_LARGE_BATCH] = WORKSPACE_COPY_INPUT;
    return rule;
}

int64_t conv_workspace_bytes(const struct program_conv *conv, enum workspace_algorithm algorithm)
{
    if (conv->groups > 1 && conv->groups == conv->in_channels)
        return 0;
    switch (algorithm) {
    case WORKSPACE_WINOGRAD:
        return winograd(conv, 4);
    case WORKSPACE_WINOGRAD_SMALL:
        return winograd(conv, 2);
    case WORKSPACE_COPY:
        return copy(conv, true, true);
    case WORKSPACE_COPY_READ:
        return copy_read(conv);
    case WORKSPACE_COPY_INPUT:
        return copy(conv, true, false);
    case WORKSPACE_NONE:
    case WORKSPACE_ALGORITHM_COUNT:
        break;
    }
    return 0;
}
