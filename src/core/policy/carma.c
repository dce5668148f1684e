/* carma's own placement policy. A job of SM activity a adds (1 - U) a to a GPU that is estimated to deliver U. So the
 * job goes where U is least: an idle GPU first, since U = 0 there. Of equals, the one with the most free memory. Which
 * GPUs qualify follows from reservations and the predicted slowdown (decide.c). */
#include "core/core_internal.h"
#include "core/policy/policy.h"

#define MEMORY_BITS 40 /* MiB of any GPU */

static int64_t rank(const struct core *core, const struct gpu *gpu)
{
    int64_t free_mib = gpu_free_bytes(core, gpu) >> 20;

    return (predicted_delivered_ppm(gpu) << MEMORY_BITS) - free_mib;
}

const struct policy policy_carma = {
    .name = "carma",
    .summary = "most predicted throughput added, within the bound on slowdown",
    .shares = true,
    .idle_first = false,
    .predicts = true,
    .rank = rank,
};
