/* DeepSpeed's published formulas for what ZeRO keeps on a GPU: model states (parameters, gradients, optimizer states of
 * Adam in mixed precision), neither activations nor context (deepspeed.readthedocs.io, "Memory Requirements"). */
#ifndef CARMA_ESTIMATE_DEEPSPEED_H
#define CARMA_ESTIMATE_DEEPSPEED_H

#include <stdint.h>

#define DEEPSPEED_STAGES 4

/* Bytes on each of `gpus` GPUs without offloading. stage 0 (nothing is split) and 1 (optimizer states are): 2 bytes a
 * parameter, 2 its gradient, 12 for the optimizer's copy and two states (ZeRO, Rajbhandari et al., 2020, section 3.1);
 * stage 2: 2 + 18/gpus; stage 3: 18/gpus and 4 bytes for each parameter of the largest layer, as
 * estimate_zero{2,3}_model_states_mem_needs have them. */
double deepspeed_model_states_bytes(int stage, double parameters, double largest_layer, int32_t gpus);

#endif
