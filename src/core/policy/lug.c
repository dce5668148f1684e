/* Thesis 6.2.2, Least Utilized GPU: the lowest SM activity interferes least. */
#include "core/state.h"

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return gpu->smact_permille;
}

const struct policy policy_lug = {
    .name = "lug",
    .summary = "least utilized GPU, by SM activity",
    .shares = true,
    .idle_first = true,
    .rank = rank,
};
