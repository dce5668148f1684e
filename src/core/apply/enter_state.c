/* How this file works: enter_state takes the job out of where its old state had it, in the order in which others see
 * that: reservation, queue, array; then into the new state's queue; at last from its GPUs, and from the core. To add a
 * state: a case there. */
#include "core/apply/enter_state.h"

#include "core/apply/reserved.h"
#include "core/idle.h"
#include "core/jobs.h"
#include "core/learn/learn.h"
#include "core/need/overuse.h"
#include "core/share/sharing.h"
#include "core/state.h"
#include "core/use.h"
#include "core/waiting/array.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/depend.h"
#include "core/waiting/order.h"

static void leave_gpus(struct core *core, struct job *job, int64_t at_ns)
{
    struct job_run *run;

    if (job->share == SHARE_ANY) /* it has none */
        return;
    run = job_run(job);
    overuse_left(core, job, at_ns);
    for (uint32_t i = 0; i < job->placement_count; i++)
        gpu_remove_resident(core, core->gpus[job->placements[i].gpu], job, at_ns);
    learn_left(job);
    sharing_ends(core, job);
    user_discharge(job);
    resources_left(core, job->wants);
    use_ends(job, at_ns);
    run->idle_step = IDLE_NOT_TOLD;
    idle_forget(job);
    job->placement_count = 0;
    run->stray_bytes = 0;
    run->stray_count = 0;
    job->share = SHARE_ANY;
    free_ptr(&job->placements);
    free_ptr(&run->strays);
}

/* Its processes keep their memory, and leave the SMs to others. What is observed of it then says nothing of its need.
 */
static void stand_still(struct core *core, struct job *job, bool suspended, int64_t at_ns)
{
    struct job_run *run = job_run(job);

    if (suspended) {
        run->suspended_since_ns = at_ns;
    } else {
        run->suspended_ns += at_ns > run->suspended_since_ns ? at_ns - run->suspended_since_ns : 0;
        run->suspended_since_ns = 0;
        run->resumed_ns = at_ns;
    }
    if (!suspended && job->queue == &core->shrinking) { /* its use is looked at anew */
        run->first_use_ns = at_ns;
        queue_remove(job);
        queue_push(&core->shrinking, job);
    }
    idle_forget(job);
    core->activity_version++;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        struct gpu *gpu = core->gpus[job->placements[i].gpu];
        gpu->changed_ns = at_ns; /* the readings before say nothing of the time after */
        gpu_opens(core, gpu);
    }
}

/* It was requeued: in its place, with its reservation, and charged with nothing. */
static void wait_again(struct core *core, struct job *job, int64_t at_ns)
{
    leave_gpus(core, job, at_ns);
    job->signalled = job->retry = false;
}

/* Puts the job where its new state belongs. */
void enter_state(struct core *core, struct job *job, uint32_t state, int64_t at_ns)
{
    if (state != JOB_QUEUED)
        end_reservation(core, job, at_ns);
    if (job->autocluster)
        autocluster_leave(core, job);
    order_forget_times(core, job);
    /* that it runs may be known only after its memory, for which it waits to be shrunk */
    if (state != JOB_RUNNING && state != JOB_SUSPENDED)
        queue_remove(job);
    if (job->state == JOB_HELD && state == JOB_QUEUED)
        array_admit(job);
    else if (job->state != JOB_HELD && (state == JOB_HELD || job_state_ended(state)))
        array_dismiss(job);
    if (state == JOB_SUSPENDED || job->state == JOB_SUSPENDED)
        stand_still(core, job, state == JOB_SUSPENDED, at_ns);
    if (job->state == JOB_REQUEUING && state == JOB_QUEUED)
        wait_again(core, job, at_ns);
    job->state = state;
    switch (state) {
    case JOB_HELD:
    case JOB_QUEUED:
        order_enter(core, job);
        break;
    case JOB_CRASHED:
        queue_push(&core->undecided, job);
        break;
    case JOB_STOPPING:
    case JOB_REQUEUING:
        if (!job->signalled)
            queue_push(&core->undecided, job);
        break;
    default:
        break;
    }
    if (state != JOB_QUEUED && state != JOB_HELD)
        depend_forget(job);
    if (state == JOB_CRASHED || job_state_ended(state))
        leave_gpus(core, job, at_ns);
    array_open(core, job->array);
    if (job_state_ended(state)) {
        depend_ended(core, job, state, at_ns);
        if (job->profile)
            job->profile->jobs--;
        job->user->unfinished--;
        core_end_job(core, job);
    }
}
