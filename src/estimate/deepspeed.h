/* DeepSpeed's published formulas for the memory that ZeRO keeps on the GPU: model states, neither activations nor
 * context. Model states are parameters, gradients, and optimizer states of Adam in mixed precision. */
#ifndef CARMA_ESTIMATE_DEEPSPEED_H
#define CARMA_ESTIMATE_DEEPSPEED_H

#include "base/error.h"
#include "estimate/estimate.h"

enum { DEEPSPEED_STAGE_COUNT = 4 };

/* Bytes on the GPU by ZeRO stage, for one GPU and without offloading. Stages 0 and 1 (Rajbhandari et al., "ZeRO", 2020,
 * section 3.1) take 16 a parameter. 2 are for it, 2 for its gradient, 12 for the optimizer's copy and two states. Stage
 * 2 (estimate_zero2_model_states_mem_needs): 20 a parameter. Stage 3 (estimate_zero3_model_states_mem_needs): 18 a
 * parameter, and 4 for each of the largest layer's. -ENOTSUP: no model to count. */
int deepspeed_stages(const struct estimate_question *question, int64_t bytes[DEEPSPEED_STAGE_COUNT], struct error *err);

#endif
