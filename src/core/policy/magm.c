/* Thesis 6.2.2, Most Available GPU Memory: the most free memory makes an out-of-memory crash least likely. */
#include "core/state.h"

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return -gpu_free_bytes(core, gpu);
}

const struct policy policy_magm = {
    .name = "magm",
    .summary = "most available GPU memory",
    .shares = true,
    .idle_first = true,
    .rank = rank,
};
