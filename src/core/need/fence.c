/* How this file works: fence_for is asked when a job is placed (place.c), fence_was_met when its run has ended: what
 * came near its fence teaches only a lower bound (apply.c). A job that ran out at a guessed one is judged in crash.c.
 */
#include "core/need/fence.h"

#include "core/guess/program_history.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/quantum.h"
#include "core/state.h"

bool fence_is_guess(const struct job *job)
{
    return job->run->fence_bytes >= 0 && job->wants->request_source != SOURCE_DECLARED;
}

bool fence_was_met(const struct job *job)
{
    int64_t peak = job_peak_bytes(job);

    return job->run->fence_bytes >= 0 && peak >= job->run->fence_bytes - FENCE_HEADROOM_BYTES / 2 &&
           peak < job->run->fence_bytes + QUANTUM_MEMORY_BYTES;
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

/* The most that a job of unknown need may use on its GPUs: their unreserved memory, up to the careful quantile. */
static int64_t guessed_fence(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    int64_t careful = program_careful_bytes(job), most = user_most_bytes(core, job->wants),
            fence = fence_around(careful < most ? careful : most);

    for (uint32_t i = 0; i < placed->count; i++) {
        int64_t free_bytes = gpu_free_bytes(core, core->gpus[placed->gpus[i]]);
        if (free_bytes < fence)
            fence = free_bytes;
    }
    return fence;
}

int64_t fence_for(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    bool last_try =
        job->oom_crashes && job_wants_idle(core, job); /* whether it fits must be observed, not decided here */
    int64_t fence;

    if (!core->config.memory_fence || placed->share != SHARE_MPS || placed->reserved_bytes < 0 || job->run->unfenced ||
        last_try)
        return -1;
    fence = fence_around(needed_bytes(job, placed));
    if (placed->reservation_source == SOURCE_PRIOR && guessed_fence(core, job, placed) > fence)
        fence = guessed_fence(core, job, placed);
    for (uint32_t i = 0; i < placed->count; i++)
        if (fence >= core->gpus[placed->gpus[i]]->total_bytes)
            return -1;
    return fence;
}
