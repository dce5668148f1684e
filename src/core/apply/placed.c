/* How this file works: apply_placed writes down what was decided, and tells each GPU, the user and the node of what the
 * job takes. It closes a GPU until the job's memory is known where the view of memory or a guessed need asks for that.
 */
#include "core/apply/placed.h"

#include <errno.h>
#include <inttypes.h>

#include "core/learn/learn.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/use.h"

int check_gpus(const struct core *core, const struct job *job, uint32_t count, const uint32_t *gpus, struct error *err)
{
    if (count != job->wants->gpus)
        return error_set(err, EINVAL, "job %" PRIu64 " wants %" PRIu32 " GPUs, not %" PRIu32, job->id, job->wants->gpus,
                         count);
    for (uint32_t i = 0; i < count; i++) {
        if (gpus[i] >= core->gpu_count)
            return error_set(err, ENOENT, "there is no GPU %" PRIu32, gpus[i]);
        for (uint32_t k = 0; k < i; k++)
            if (gpus[k] == gpus[i])
                return error_set(err, EINVAL, "GPU %" PRIu32 " is named twice", gpus[i]);
    }
    return 0;
}

/* The monitor would offer the GPU again until the new job's memory shows. A job of unknown need may use more than it
 * requested. And a crashed job that runs alone must first have settled. */
static bool closes_gpu(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    return core->config.settle_ns > 0 &&
           (core->config.memory_view == MEMORY_MONITOR || placed->reservation_source == SOURCE_PRIOR ||
            (placed->retry && job->oom_crashes && !placed->shared));
}

void apply_placed(struct core *core, struct job *job, const struct record *record)
{
    const struct record_placed *placed = &record->placed;
    struct job_run *run = job_run(job);

    job->placed_ns = record->at_ns;
    job->share = placed->share;
    if (job->share == SHARE_ANY)
        job->share = job->wants->exclusive ? SHARE_EXCLUSIVE : SHARE_TIME_SLICE;
    job->retry = placed->retry;
    run->overuser = 0;
    job->reserved_bytes = placed->reserved_bytes;
    job->reservation_source = placed->reservation_source;
    run->granted_bytes = placed->reserved_bytes;
    run->fence_bytes = placed->fence_bytes;
    run->threads_percent = placed->threads_percent;
    run->first_use_ns = 0;
    run->suspended_ns = 0;
    run->slowed_permille = 0;
    run->fastest = run->fastest_of = 0;
    run->beyond_ns = 0;
    job->placement_count = placed->count;
    job->placements = xcalloc(placed->count, sizeof *job->placements);
    for (uint32_t i = 0; i < placed->count; i++) {
        struct gpu *gpu = core->gpus[placed->gpus[i]];
        job->placements[i] = (struct job_placement){.gpu = placed->gpus[i]};
        gpu_add_resident(gpu, job, record->at_ns);
        if (core_gates_slowdown(core))
            gpu_opens(core, gpu); /* beside this job, another may be slowed less than it would have been before */
        if (closes_gpu(core, job, placed)) {
            gpu_set_settling(core, gpu, job->id);
            gpu->closed_until_ns = record->at_ns + GPU_SETTLE_LIMIT * core->config.settle_ns;
        }
    }
    learn_placed(job);
    user_charge(core, job);
    resources_taken(core, job->wants);
    use_begins(core, job, record->at_ns);
    sharing_begins(core, job);
    if (placed->count)
        core->next_decision_ns = record->at_ns + core->config.decide_period_ns;
    if (placed->shared) {
        core->next_decision_ns += core->config.collocate_extra_ns;
        /* the cycle is that of collocations (thesis 6.2.2) */
        core->round_robin_next = (placed->gpus[placed->count - 1] + 1) % core->gpu_count;
    }
}
