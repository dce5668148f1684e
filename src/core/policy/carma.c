/* carma's own placement policy: a job goes where most is done in addition (slowdown.h), so to an idle GPU first.
 * Then it goes beside jobs of its user by MPS, before it takes turns with others. Of equals, the GPU with the most free
 * memory. Which GPUs qualify follows from reservations and the predicted slowdown (qualify.c). */
#include "core/share/slowdown.h"
#include "core/state.h"

#define MEMORY_BITS 40 /* MiB of any GPU */

static int64_t rank(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    int64_t free_mib = gpu_free_bytes(core, gpu) >> 20;

    return -slowdown_added_ppm(core, gpu, job) * (INT64_C(1) << MEMORY_BITS) - free_mib;
}

const struct policy policy_carma = {
    .name = "carma",
    .summary = "most predicted throughput added, within the bound on slowdown",
    .shares = true,
    .idle_first = false,
    .predicts = true,
    .rank = rank,
};
