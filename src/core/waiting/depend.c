/* How this file works: a dependency stands in two lists, that of the job that waits and that of the job on which it
 * depends. When the latter starts or ends, `is_met` says what comes of each. A dependency on a start with a delay
 * becomes a time, as `--begin` is one. Nothing can turn into a circle: a job depends on earlier ones only. */
#include "core/waiting/depend.h"

#include <errno.h>
#include <inttypes.h>
#include <utlist.h>

#include "base/memory.h"
#include "core/state.h"
#include "core/waiting/order.h"

/* Of a job that has started, or has ended in this state. */
enum met { NOT_YET, MET, NEVER };

static enum met is_met(uint32_t kind, bool ended, uint32_t state)
{
    switch (kind) {
    case DEPENDS_START:
        return MET; /* as in Slurm: also of one that was cancelled before */
    case DEPENDS_ANY:
        return ended ? MET : NOT_YET;
    case DEPENDS_OK:
        return !ended ? NOT_YET : state == JOB_COMPLETED ? MET : NEVER;
    default: /* DEPENDS_NOT_OK */
        return !ended ? NOT_YET : state == JOB_COMPLETED ? NEVER : MET;
    }
}

static void drop(struct dependency *dependency)
{
    DL_DELETE2(dependency->of->depends, dependency, previous, next);
    DL_DELETE2(dependency->on->dependents, dependency, previous_on, next_on);
    free(dependency);
}

static void not_before(struct job *job, int64_t begin_ns)
{
    if (begin_ns > job->begin_ns)
        job->begin_ns = begin_ns;
}

int depend_add(struct core *core, struct job *job, const struct record_depends *depends, struct error *err)
{
    struct job *on = core_job_by_id(core, depends->on);
    struct dependency *dependency;

    if (depends->kind >= DEPENDS_KINDS || depends->delay_ns < 0 || job->wants->external || job->placed_ns ||
        (depends->kind != DEPENDS_TIME && !is_interval(depends->delay_ns)) ||
        (depends->delay_ns && depends->kind != DEPENDS_START && depends->kind != DEPENDS_TIME))
        return error_set(err, EINVAL, "job %" PRIu64 " cannot wait for that", job->id);
    if (depends->kind == DEPENDS_TIME) {
        not_before(job, depends->delay_ns);
        return 0;
    }
    if (!on || on->id >= job->id)
        return error_set(err, ENOENT, "job %" PRIu64 " cannot depend on job %" PRIu64, job->id, depends->on);
    dependency = xcalloc(1, sizeof *dependency);
    *dependency = (struct dependency){.of = job, .on = on, .kind = depends->kind, .delay_ns = depends->delay_ns};
    DL_APPEND2(job->depends, dependency, previous, next);
    DL_APPEND2(on->dependents, dependency, previous_on, next_on);
    return 0;
}

void depend_find_next_begin(struct core *core)
{
    core->next_begin_ns = INT64_MAX;
    for (const struct job *job = core->kept.head; job; job = job->next)
        if (!job->depends && job->begin_ns && job->begin_ns < core->next_begin_ns)
            core->next_begin_ns = job->begin_ns;
}

static void tell_dependents(struct core *core, struct job *on, bool ended, uint32_t state, int64_t at_ns)
{
    struct dependency *dependency, *next;

    DL_FOREACH_SAFE2(on->dependents, dependency, next, next_on)
    {
        struct job *job = dependency->of;
        enum met met = is_met(dependency->kind, ended, state);
        if (met == NOT_YET)
            continue;
        if (met == MET && dependency->delay_ns)
            not_before(job, at_ns + dependency->delay_ns);
        if (met == NEVER && !job->failed_on)
            job->failed_on = on->id;
        drop(dependency);
        if (!job->depends || job->failed_on)
            order_moves(core, job);
    }
}

void depend_started(struct core *core, struct job *on, int64_t at_ns)
{
    tell_dependents(core, on, false, JOB_RUNNING, at_ns);
}

void depend_ended(struct core *core, struct job *on, uint32_t state, int64_t at_ns)
{
    tell_dependents(core, on, true, state, at_ns);
}

void depend_forget(struct job *job)
{
    while (job->depends)
        drop(job->depends);
    job->begin_ns = 0;
    job->failed_on = 0;
}

void depend_free(struct job *job)
{
    depend_forget(job);
    while (job->dependents)
        drop(job->dependents);
}
