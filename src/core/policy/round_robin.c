/* Thesis 6.2.2: GPUs in fixed cyclic order, at any load. Only reservations (reserve view) hold it back. */
#include "core/state.h"

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return ((int64_t)gpu->number - core->round_robin_next + core->gpu_count) % core->gpu_count;
}

const struct policy policy_round_robin = {
    .name = "round-robin",
    .summary = "the next GPU in cyclic order, for any load",
    .shares = true,
    .idle_first = true,
    .waives_load = true,
    .rank = rank,
};
