#include "estimate/deepspeed.h"

#include <errno.h>

#include "estimate/counts.h"

double deepspeed_model_states_bytes(int stage, double parameters, double largest_layer, int32_t gpus)
{
    switch (stage) {
    case 0:
        return 16 * parameters;
    case 1:
        return 4 * parameters + 12 * parameters / gpus;
    case 2:
        return 2 * parameters + 18 * parameters / gpus;
    default:
        return 4 * largest_layer + 18 * parameters / gpus;
    }
}

/* Stage 2: of the two that DeepSpeed's own estimator knows, the one that asks for nothing but the parameters. */
static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct layer_counts counts;
    int rc = layer_counts_of(question, &counts, err);

    if (rc)
        return rc;
    return estimate_from_formula(
        "deepspeed", deepspeed_model_states_bytes(2, counts.parameters, counts.largest_layer, 1), estimate, err);
}

const struct estimator estimator_deepspeed = {
    "deepspeed", "DeepSpeed's formula for ZeRO's model states on one GPU, stage 2: 20 bytes a parameter", answer};
