#include "estimate/deepspeed.h"

#include "estimate/counts.h"

int deepspeed_stages(const struct estimate_question *question, int64_t bytes[DEEPSPEED_STAGE_COUNT], struct error *err)
{
    struct layer_counts counts;
    int rc = layer_counts_of(question, &counts, err);

    if (rc)
        return rc;
    bytes[0] = bytes[1] = (int64_t)(16 * counts.parameters);
    bytes[2] = (int64_t)(20 * counts.parameters);
    bytes[3] = (int64_t)(18 * counts.parameters + 4 * counts.largest_layer);
    return 0;
}

/* Stage 2: of the two that DeepSpeed's own estimator knows, the one that asks for nothing but the parameters. */
static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    int64_t bytes[DEEPSPEED_STAGE_COUNT];
    int rc = deepspeed_stages(question, bytes, err);

    return rc ? rc : estimate_from_formula("deepspeed", (double)bytes[2], estimate, err);
}

const struct estimator estimator_deepspeed = {
    "deepspeed", "DeepSpeed's formula for ZeRO's model states on one GPU, stage 2: 20 bytes a parameter", answer};
