/* What cuDNN takes as a convolution's workspace, by rule of thumb: which rule holds is cuDNN's choice and not published,
 * so several are replayed and the trained correction weighs them (data/models/replay.md). */
#ifndef CARMA_ESTIMATE_WORKSPACE_H
#define CARMA_ESTIMATE_WORKSPACE_H

#include <stdint.h>

#include "estimate/program.h"

enum workspace_algorithm {
    WORKSPACE_NONE,
    WORKSPACE_WINOGRAD, /* F(4x4,3x3): 4*36*(B*ceil(H/4)*ceil(W/4)*(Ci+Co)+Ci*Co) bytes; only 3x3, stride 1 */
    WORKSPACE_WINOGRAD_SMALL, /* F(2x2,3x3) */
    WORKSPACE_COPY,     /* input, output and weights, for another layout (channels padded to 4) */
    WORKSPACE_ALGORITHM_COUNT
};

int64_t conv_workspace_bytes(const struct program_conv *conv, enum workspace_algorithm algorithm);

#endif
