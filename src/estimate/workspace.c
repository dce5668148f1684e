#include "estimate/workspace.h"

#include <math.h>

#define CHANNELS_TOGETHER 4 /* an access of 16 bytes in fp32 */

/* The figures are products of what others wrote: worked out in floating point, which does not overflow, and cut where no
 * GPU has that much. Up to 2^53 they are exact. */
static int64_t bounded(double bytes)
{
    return bytes < (double)PROGRAM_MAX_BYTES ? (int64_t)bytes : PROGRAM_MAX_BYTES;
}

static double padded(int64_t channels)
{
    return ceil((double)channels / CHANNELS_TOGETHER) * CHANNELS_TOGETHER;
}

static double volume(const struct program_conv *conv, const int32_t size[3])
{
    double product = 1;

    for (uint8_t i = 0; i < conv->rank; i++)
        product *= size[i];
    return product;
}

static int64_t winograd(const struct program_conv *conv, double tile)
{
    double tiles = (double)conv->batch, in = (double)conv->in_channels, out = (double)conv->out_channels;

    if (conv->rank != 2 || conv->groups > 1)
        return 0;
    for (uint8_t i = 0; i < conv->rank; i++) {
        if (conv->kernel[i] != 3 || conv->stride[i] != 1)
            return 0;
        tiles *= ceil(conv->out[i] / tile);
    }
    return bounded(conv->element_bytes * (tile + 2) * (tile + 2) * (tiles * (in + out) + in * out));
}

static int64_t copy(const struct program_conv *conv)
{
    double batch = (double)conv->batch, weights = (double)conv->in_channels * (double)conv->out_channels;
    double groups = conv->groups > 1 ? (double)conv->groups : 1;

    return bounded(conv->element_bytes * (batch * padded(conv->in_channels) * volume(conv, conv->in) +
                                          batch * padded(conv->out_channels) * volume(conv, conv->out) +
                                          weights / groups * volume(conv, conv->kernel)));
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
        return copy(conv);
    case WORKSPACE_NONE:
    case WORKSPACE_ALGORITHM_COUNT:
        break;
    }
    return 0;
}
