/* Thesis 6.3.3: the least free memory that still suffices, to fill one GPU before the next. */
#include "core/state.h"

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return gpu_free_bytes(core, gpu);
}

const struct policy policy_best_fit = {
    .name = "best-fit",
    .summary = "least free memory that still suffices",
    .shares = true,
    .idle_first = true,
    .rank = rank,
};
