/* SM activity of a training, from counts of its program: on the A100 that the published runs were measured on, and on
 * another GPU.
 *
 * Scaling from one GPU model to another (thesis section 7.1 leaves it open; no second GPU was measured). Assumed:
 * - a step's time is that of its kernels, t, and of the GPU's waits (launches, data, Python), w; SM activity is
 *   the share a = t / (t + w) times a kernel's coverage of the SMs, and that coverage stays as it is;
 * - w stays: it is the host's;
 * - t changes as the roofline does: the share of it that arithmetic takes with SMs times clock, the other with memory
 *   bandwidth. The shares are those of the A100: operations over 19.5 TFLOP/s fp32, bytes over 1555 GB/s.
 * So a' = a r / (a r + 1 - a) with r = t' / t. Tensor cores, caches and different launch costs are left out. */
#ifndef CARMA_ESTIMATE_UTILISATION_H
#define CARMA_ESTIMATE_UTILISATION_H

#include "estimate/program/program.h"

/* Of one training step in the steady state; in this order in the trees. */
#define UTILISATION_FEATURES(X)                                                                                        \
    X(U_FLOPS)      /* ln of the forward pass's operations */                                                          \
    X(U_MOVED)      /* ln of the bytes of all results of a step */                                                     \
    X(U_KERNELS)    /* ln of how many there are: about as many kernels */                                              \
    X(U_FLOPS_EACH) /* ln of operations and bytes over that */                                                         \
    X(U_MOVED_EACH)                                                                                                    \
    X(U_INTENSITY) /* ln of operations over bytes */                                                                   \
    X(U_ROOFLINE)  /* ln of the seconds that the A100's roofline gives, and over the kernels */                        \
    X(U_ROOFLINE_EACH)                                                                                                 \
    X(U_BATCH)       /* ln */                                                                                          \
    X(U_PARAMETERS)  /* ln of bytes */                                                                                 \
    X(U_ACTIVATIONS) /* ln of elements of a batch */                                                                   \
    X(U_INPUT)       /* ln of bytes */                                                                                 \
    X(U_LAYERS)                                                                                                        \
    X(U_CONVOLUTIONS)                                                                                                  \
    X(U_LINEARS)                                                                                                       \
    X(U_NORMS)                                                                                                         \
    X(U_DROPOUTS)                                                                                                      \
    X(U_FUNCTIONS) /* activation functions */                                                                          \
    X(U_ATTENTIONS)                                                                                                    \
    X(U_CHANNELS) /* of convolutions, weighted by operations: output and input channels, ln of pixels of a batch */    \
    X(U_CHANNELS_IN)                                                                                                   \
    X(U_PIXELS)

enum utilisation_feature {
#define X(NAME) UTILISATION_##NAME,
    UTILISATION_FEATURES(X)
#undef X
        UTILISATION_COUNT
};
extern const char *const utilisation_feature_names[UTILISATION_COUNT];

void utilisation_features_compute(float values[UTILISATION_COUNT], const struct program *program);

#endif
