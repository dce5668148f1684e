/* How this file works: a job has the step that was last taken, and the time at which it will be ended, told with the
 * first warning. decide.c takes the steps that are due; core.next_idle_ns, a cache, says from when on it need look. */
#include "core/idle.h"

#include <errno.h>
#include <inttypes.h>

#include "core/job.h"
#include "core/state.h"

int64_t idle_due_ns(const struct job *job)
{
    int64_t limit_ns = job->wants->idle_limit_ns;

    if (job->state != JOB_RUNNING || !job->run->unused_since_ns)
        return INT64_MAX;
    switch (job->run->idle_step) {
    case IDLE_NOT_TOLD:
        return job->run->unused_since_ns + limit_ns / 2;
    case IDLE_WARNED:
        return job->run->idle_ends_ns - limit_ns / 10;
    case IDLE_WARNED_AGAIN:
        return job->run->idle_ends_ns;
    default:
        return INT64_MAX;
    }
}

struct record_idle idle_next_step(const struct job *job, int64_t now_ns)
{
    int64_t limit_ns = job->wants->idle_limit_ns;
    struct record_idle next = {.step = job->run->idle_step + 1, .ends_ns = job->run->idle_ends_ns};
    int64_t least_ns = now_ns + (next.step == IDLE_WARNED         ? limit_ns / 2
                                 : next.step == IDLE_WARNED_AGAIN ? limit_ns / 10
                                                                  : 0);

    if (next.step == IDLE_WARNED)
        next.ends_ns = job->run->unused_since_ns + limit_ns;
    if (next.step < IDLE_ENDED && next.ends_ns < least_ns)
        next.ends_ns = least_ns;
    return next;
}

void idle_forget(struct job *job)
{
    struct job_run *run = job_run(job);

    run->unused_since_ns = 0;
    if (run->idle_step == IDLE_ENDED)
        return;
    run->idle_step = IDLE_NOT_TOLD;
    run->idle_ends_ns = 0;
}

int idle_note(struct core *core, struct job *job, const struct record *unused, struct error *err)
{
    int64_t since_ns = unused->unused.since_ns;

    if (!job->wants->idle_limit_ns || job->placement_count == 0)
        return error_set(err, EINVAL, "job %" PRIu64 " has no idle limit, or no GPUs", job->id);
    if (since_ns < 0 || since_ns > unused->at_ns)
        return error_set(err, EINVAL, "job %" PRIu64 " cannot be unused since %" PRId64, job->id, since_ns);
    if (since_ns == job->run->unused_since_ns)
        return 0;
    idle_forget(job);
    job_run(job)->unused_since_ns = since_ns;
    if (idle_due_ns(job) < core->next_idle_ns)
        core->next_idle_ns = idle_due_ns(job);
    return 0;
}

int idle_take_step(struct job *job, const struct record_idle *idle, struct error *err)
{
    struct job_run *run = job_run(job);

    if (!run->unused_since_ns || idle->step != run->idle_step + 1 || idle->step > IDLE_ENDED)
        return error_set(err, EINVAL, "job %" PRIu64 " is not idle, or not at step %" PRIu32, job->id, idle->step);
    run->idle_step = idle->step;
    run->idle_ends_ns = idle->ends_ns;
    return 0;
}
