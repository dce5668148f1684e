#include "core/fence.h"

#include "core/core_internal.h"
#include "core/need/need.h"
#include "core/quantum.h"

bool fence_is_guess(const struct job *job)
{
    return job->fence_bytes >= 0 && job->wants->request_source != SOURCE_DECLARED;
}

bool fence_was_met(const struct job *job)
{
    int64_t peak = job_peak_bytes(job);

    return job->fence_bytes >= 0 && peak >= job->fence_bytes - FENCE_HEADROOM_BYTES / 2 &&
           peak < job->fence_bytes + QUANTUM_MEMORY_BYTES;
}

/* The job's known or estimated need: at least its request, and where that was not declared, at least the observed use
 * of its workload. */
static int64_t needed_bytes(const struct job *job, const struct record_placed *placed)
{
    int64_t needed = placed->reserved_bytes;

    if (job->wants->request_bytes > needed)
        needed = job->wants->request_bytes;
    if (job->wants->request_source != SOURCE_DECLARED && job->profile && job->profile->peak_bytes > needed)
        needed = job->profile->peak_bytes;
    return needed;
}

int64_t fence_around(int64_t bytes)
{
    return bytes + FENCE_HEADROOM_BYTES + bytes / FENCE_HEADROOM_PART;
}

int64_t fence_for(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    bool last_try =
        job->oom_crashes && job_wants_idle(core, job); /* whether it fits must be observed, not decided here */
    int64_t fence;

    if (!core->config.memory_fence || placed->share != SHARE_MPS || placed->reserved_bytes < 0 || job->unfenced ||
        last_try)
        return -1;
    fence = fence_around(needed_bytes(job, placed));
    if (placed->reservation_source == SOURCE_PRIOR && prior_fence_bytes(core, job, placed) > fence)
        fence = prior_fence_bytes(core, job, placed);
    for (uint32_t i = 0; i < placed->count; i++)
        if (fence >= core->gpus[placed->gpus[i]]->total_bytes)
            return -1;
    return fence;
}
