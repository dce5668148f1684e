/* Activations as words, for tests to read and print. */
#ifndef CARMA_TESTS_ACTIVATION_NAME_H
#define CARMA_TESTS_ACTIVATION_NAME_H

#include "estimate/layers.h"

static inline const char *activation_name(enum activation activation)
{
    static const char *const names[ACTIVATION_COUNT] = {
        [ACTIVATION_NONE] = "none",
        [ACTIVATION_RELU] = "relu",
        [ACTIVATION_RELU6] = "relu6",
        [ACTIVATION_LEAKY_RELU] = "leaky_relu",
        [ACTIVATION_PRELU] = "prelu",
        [ACTIVATION_ELU] = "elu",
        [ACTIVATION_SELU] = "selu",
        [ACTIVATION_GELU] = "gelu",
        [ACTIVATION_SILU] = "silu",
        [ACTIVATION_MISH] = "mish",
        [ACTIVATION_SOFTPLUS] = "softplus",
        [ACTIVATION_TANH] = "tanh",
        [ACTIVATION_SIGMOID] = "sigmoid",
        [ACTIVATION_HARDSWISH] = "hardswish",
        [ACTIVATION_HARDSIGMOID] = "hardsigmoid",
    };

    return (unsigned)activation < ACTIVATION_COUNT ? names[activation] : "none";
}

#endif
