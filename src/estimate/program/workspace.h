/* The size of a convolution's cuDNN workspace, by rule of thumb. cuDNN's choice of the rule is not published, so
 * several are replayed. The trained correction weighs them (data/models/replay.md). */
#ifndef CARMA_ESTIMATE_WORKSPACE_H
#define CARMA_ESTIMATE_WORKSPACE_H

#include <stdint.h>

#include "estimate/program/program.h"

enum workspace_algorithm {
    WORKSPACE_NONE,
    /* Winograd's F(4x4,3x3), Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016: tiles of 4 x 4
     * outputs are 6 x 6 numbers once transformed. With elements of e bytes and an output of H x W that is
     * e*36*(B*ceil(H/4)*ceil(W/4)*(Ci+Co) + Ci*Co) bytes. Only two-dimensional 3x3 of stride 1 and one group; 0
     * otherwise. */
    WORKSPACE_WINOGRAD,
    WORKSPACE_WINOGRAD_SMALL, /* F(2x2,3x3): tiles of 2 x 2, 16 numbers */
    WORKSPACE_COPY, /* input, output and weights, for another layout; channels of the first two padded to a multiple of
                       4 */
    /* The same without the pass's output (output, gradient of the input), which is written in place where its channels
     * are a multiple of 4. The one-convolution networks of the measured runs show this in forward passes. */
    WORKSPACE_COPY_READ,
    WORKSPACE_COPY_INPUT, /* the input (or its gradient) and the weights */
    WORKSPACE_ALGORITHM_COUNT
};

/* Classes of convolutions, where cuDNN's choice changes in the measured runs. From WORKSPACE_BY_CHANNELS on:
 * 3x3 ones of stride 1, by the sum of their input and output channels (workspace.c has the limits). */
enum workspace_class {
    WORKSPACE_POINTWISE, /* 1x1 of stride 1: a matrix product */
    WORKSPACE_OTHER,     /* strided, larger kernels, grouped, not of two dimensions */
    WORKSPACE_NARROWING, /* 3x3 of stride 1 with a quarter of its input's channels, or fewer */
    WORKSPACE_BY_CHANNELS,
    WORKSPACE_SMALL = WORKSPACE_BY_CHANNELS + 6, /* many channels on at most 16 x 16 pixels */
    WORKSPACE_LARGE_BATCH,                       /* the widest in batches of more than 40 */
    WORKSPACE_CLASSES
};

struct workspace_rule {
    uint8_t algorithm[3]
                     [WORKSPACE_CLASSES]; /* enum workspace_algorithm, by enum conv_pass and conv_workspace_class() */
};

/* One algorithm for each pass, for every class. */
struct workspace_rule workspace_rule_by_pass(enum workspace_algorithm forward, enum workspace_algorithm backward_data,
                                             enum workspace_algorithm backward_weight);
/* The best fit to the measured runs without a trained correction. */
struct workspace_rule workspace_rule_default(void);

uint32_t conv_workspace_class(const struct program_conv *conv); /* enum workspace_class, or beyond its third */

/* 0 for depthwise convolutions: PyTorch computes them without cuDNN. */
int64_t conv_workspace_bytes(const struct program_conv *conv, enum workspace_algorithm algorithm);

/* The product of the first conv->rank sizes. */
double workspace_volume(const struct program_conv *conv, const int32_t size[3]);

#endif
