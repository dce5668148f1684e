/* Thesis 6.3.3 (its oracle is first fit with exact memory): the first GPU, in index order, that qualifies. */
#include "core/state.h"

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return gpu->number;
}

const struct policy policy_first_fit = {
    .name = "first-fit",
    .summary = "the first GPU that qualifies",
    .shares = true,
    .idle_first = true,
    .rank = rank,
};
