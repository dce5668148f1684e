/* Thesis 6.2.2, Most Utilized GPU: fills active GPUs and leaves idle ones alone, so that they may save power. */
#include "core/state.h"

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    /* Every GPU with residents comes before every idle one; among them the busier first. */
    return gpu->resident_count ? -(int64_t)gpu->smact_permille - 1 : 1;
}

const struct policy policy_mug = {
    .name = "mug",
    .summary = "most utilized GPU first, idle ones last",
    .shares = true,
    .idle_first = false,
    .rank = rank,
};
