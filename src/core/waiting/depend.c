/* How this file works: a dependency stands in two lists, that of the job that waits and that of the job on which it
 * depends (struct awaited), in which those on its start go first. When the latter starts or ends, `is_met` says what
 * comes of each. A dependency on a start with a delay becomes a time, as `--begin` is one. Nothing can turn into a
 * circle: a job depends on earlier ones only.
 *
 * Any number of jobs may depend on one, and the daemon answers nobody while a record is applied. So the record of a
 * start or an end tells a few of them, and decisions (RECORD_TOLD) tell the others, some with each. Until then the
 * awaited job, which may have ended, stands in core.tellers, in the order of ids: so a snapshot's dependencies alone
 * bring it back. */
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

/* Of a start or an end that has come. */
#define TOLD_AT_ONCE 20

static void drop(struct dependency *dependency)
{
    dependency->of->user->dependencies--;
    DL_DELETE2(dependency->of->depends, dependency, previous, next);
    DL_DELETE2(dependency->on->dependents, dependency, previous_on, next_on);
    free(dependency);
}

static struct awaited *awaited_of(struct job *job)
{
    if (!job->awaited) {
        job->awaited = xcalloc(1, sizeof *job->awaited);
        job->awaited->id = job->id;
    }
    return job->awaited;
}

struct depend_news depend_news(const struct dependency *dependency)
{
    const struct awaited *on = dependency->on;

    if (dependency->kind == DEPENDS_START && on->started_ns)
        return (struct depend_news){.state = JOB_RUNNING, .at_ns = on->started_ns};
    return (struct depend_news){.state = on->ended_as, .at_ns = on->ended_ns};
}

static void not_before(struct job *job, int64_t begin_ns)
{
    if (begin_ns > job->begin_ns)
        job->begin_ns = begin_ns;
}

/* In the order in which they are told: those that wait for the start from the last one on, then the others from the
 * first one on. So it follows from the state, and a job that comes later is at its place at once. */
static void add(struct job *job, struct awaited *on, const struct record_depends *depends)
{
    struct dependency *dependency = xcalloc(1, sizeof *dependency), *at;

    *dependency = (struct dependency){.of = job, .on = on, .kind = depends->kind, .delay_ns = depends->delay_ns};
    job->user->dependencies++;
    DL_APPEND2(job->depends, dependency, previous, next);
    if (depends->kind == DEPENDS_START) {
        for (at = on->dependents; at && at->kind == DEPENDS_START && at->of->id > job->id;)
            at = at->next_on;
        DL_PREPEND_ELEM2(on->dependents, at, dependency, previous_on, next_on);
    } else {
        for (at = on->dependents ? on->dependents->previous_on : NULL;
             at && at->kind != DEPENDS_START && at->of->id > job->id;)
            at = at == on->dependents ? NULL : at->previous_on;
        DL_APPEND_ELEM2(on->dependents, at, dependency, previous_on, next_on);
    }
}

int depend_add(struct core *core, struct job *job, const struct record_depends *depends, struct error *err)
{
    struct job *on = core_job_by_id(core, depends->on);

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
    add(job, awaited_of(on), depends);
    return 0;
}

/* ---- What those are told that wait for it ---- */

static int compare_awaited(const struct awaited *a, const struct awaited *b)
{
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Most are the latest: looked for from the end. */
static void stand_among_tellers(struct core *core, struct awaited *on)
{
    struct awaited *before = core->tellers ? core->tellers->previous : NULL;

    if (on->tells)
        return;
    on->tells = true;
    while (before && compare_awaited(before, on) > 0)
        before = before == core->tellers ? NULL : before->previous;
    if (before)
        DL_APPEND_ELEM2(core->tellers, before, on, previous, next);
    else
        DL_PREPEND2(core->tellers, on, previous, next);
}

static void leave_tellers(struct core *core, struct awaited *on)
{
    if (on->tells)
        DL_DELETE2(core->tellers, on, previous, next);
    on->tells = false;
    if (on->gone)
        free(on);
}

static void tell(struct core *core, struct dependency *dependency, struct depend_news news)
{
    struct job *job = dependency->of;
    enum met met = is_met(dependency->kind, job_state_ended(news.state), news.state);

    if (met == MET && dependency->delay_ns)
        not_before(job, news.at_ns + dependency->delay_ns);
    if (met == NEVER && !job->failed_on)
        job->failed_on = dependency->on->id;
    drop(dependency);
    if (!job->depends || job->failed_on)
        order_moves(core, job);
}

/* What it has to tell, and who comes later is told when it starts or ends again. */
static void all_know(struct core *core, struct awaited *on)
{
    on->started_ns = 0;
    leave_tellers(core, on);
}

/* At most so many; returns how many it has told. */
static uint32_t tell_some(struct core *core, struct awaited *on, uint32_t most)
{
    uint32_t told = 0;

    while (on->dependents && told < most) {
        struct depend_news news = depend_news(on->dependents);
        if (news.state == DEPEND_NO_NEWS)
            break;
        tell(core, on->dependents, news);
        told++;
    }
    if (on->dependents && depend_news(on->dependents).state != DEPEND_NO_NEWS)
        stand_among_tellers(core, on);
    else
        all_know(core, on);
    return told;
}

int depend_tell(struct core *core, uint32_t most, struct error *err)
{
    if (!core->tellers || most == 0)
        return error_set(err, ENOENT, "nobody is to be told of a job that started or ended");
    while (core->tellers && most > 0)
        most -= tell_some(core, core->tellers, most);
    return 0;
}

void depend_started(struct core *core, struct job *job, int64_t at_ns)
{
    if (!job->awaited)
        return;
    job->awaited->started_ns = at_ns;
    tell_some(core, job->awaited, TOLD_AT_ONCE);
}

void depend_ended(struct core *core, struct job *job, uint32_t state, int64_t at_ns)
{
    struct awaited *on = job->awaited;

    if (!on)
        return;
    job->awaited = NULL;
    on->gone = true;
    on->ended_as = state;
    on->ended_ns = at_ns;
    tell_some(core, on, TOLD_AT_ONCE);
}

int depend_restore(struct core *core, struct job *job, const struct record_state_depends *state, struct error *err)
{
    struct job *alive = core_job_by_id(core, state->depends.on);
    struct awaited *on = alive ? awaited_of(alive) : core->tellers ? core->tellers->previous : NULL;

    if (state->told_as == DEPEND_NO_NEWS)
        return depend_add(core, job, &state->depends, err);
    if (state->depends.kind >= DEPENDS_TIME || state->depends.on >= job->id || state->told_ns <= 0 ||
        (state->told_as != JOB_RUNNING && (alive || !job_state_ended(state->told_as))))
        return error_set(err, EINVAL, "job %" PRIu64 " cannot wait for that", job->id);
    while (on && on->id > state->depends.on)
        on = on == core->tellers ? NULL : on->previous;
    if (!on || on->id != state->depends.on) {
        on = xcalloc(1, sizeof *on);
        on->id = state->depends.on;
        on->gone = true;
    }
    if (state->told_as == JOB_RUNNING) {
        on->started_ns = state->told_ns;
    } else {
        on->ended_as = state->told_as;
        on->ended_ns = state->told_ns;
    }
    add(job, on, &state->depends);
    stand_among_tellers(core, on);
    return 0;
}

void depend_forget(struct job *job)
{
    while (job->depends)
        drop(job->depends);
    job->begin_ns = 0;
    job->failed_on = 0;
}

void depend_free(struct core *core, struct job *job)
{
    struct awaited *on = job->awaited;

    depend_forget(job);
    if (!on)
        return;
    while (on->dependents)
        drop(on->dependents);
    on->gone = true;
    job->awaited = NULL;
    leave_tellers(core, on);
}

void depend_free_tellers(struct core *core)
{
    while (core->tellers) {
        while (core->tellers->dependents)
            drop(core->tellers->dependents);
        leave_tellers(core, core->tellers);
    }
}
