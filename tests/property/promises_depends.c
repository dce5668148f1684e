/* The promises to jobs that depend on others, or on a time. */
#include "promises.h"
#include "core/waiting/array.h"
#include "core/waiting/depend.h"

enum met { NOT_YET, MET, NEVER };

static enum met met(const struct world *world, const struct record_depends *depends)
{
    const struct world_job *on = &world->jobs[depends->on];
    int64_t since_ns = on->started_ns ? on->started_ns : on->ended_ns;

    switch (depends->kind) {
    case DEPENDS_OK:
        return !on->ended ? NOT_YET : on->completed ? MET : NEVER;
    case DEPENDS_NOT_OK:
        return !on->ended ? NOT_YET : on->completed ? NEVER : MET;
    case DEPENDS_ANY:
        return on->ended ? MET : NOT_YET;
    case DEPENDS_START:
        return (on->started_ns || on->ended) && world->now_ns >= since_ns + depends->delay_ns ? MET : NOT_YET;
    default:
        return world->now_ns >= depends->delay_ns ? MET : NOT_YET;
    }
}

bool is_met(const struct world *world, uint64_t id)
{
    const struct world_job *job = &world->jobs[id];

    for (uint32_t i = 0; i < job->depends_count; i++)
        if (met(world, &job->depends[i]) != MET)
            return false;
    return true;
}

/* Some of it is refused. */
void depend(struct world *world, uint64_t id)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_DEPENDS, .job = id};
    struct record_depends *depends = &input.depends;
    struct world_job *job = &world->jobs[id];
    const struct job *known = core_find_job(world->core, id);

    depends->kind = (uint32_t)random_range(r, 0, DEPENDS_KINDS - 1);
    depends->on = depends->kind == DEPENDS_TIME ? 0 : (uint64_t)random_range(r, 1, (int64_t)id);
    if (depends->kind == DEPENDS_TIME)
        depends->delay_ns = world->now_ns + random_range(r, -1, 100) * NS_PER_SEC;
    if (depends->kind == DEPENDS_START)
        depends->delay_ns = random_range(r, 0, 60) * NS_PER_SEC;
    bool good = known && (known->state == JOB_QUEUED || known->state == JOB_HELD) && !job->wants.external &&
                job->runs == 0 &&
                (depends->kind == DEPENDS_TIME || (depends->on < id && !world->jobs[depends->on].ended));
    if (job->depends_count == DEPENDS_MOST)
        return;
    /* carmad asks itself whether the other has started already */
    if (good && depends->kind == DEPENDS_START && world->jobs[depends->on].runs)
        return;
    if (feed(world, &input) != good)
        fail(world, "job %" PRIu64 " was to depend on job %" PRIu64 ", or not", id, depends->on);
    if (good)
        job->depends[job->depends_count++] = *depends;
}

/* Of one that waits. */
void check_depends(const struct world *world, const struct job *job, uint32_t code)
{
    bool kept = code == REASON_DEPENDS || code == REASON_BEGIN;

    if (code == REASON_BEGIN && core_next_wake_ns(world->core, world->now_ns) > job->begin_ns)
        fail(world, "nobody looks at job %" PRIu64 " when its time has come", job->id);
    if (code == REASON_NEVER_MET || (kept && world->jobs[job->id].runs))
        fail(world, "job %" PRIu64 " waits for '%s'", job->id, reason_name(code));
    if (kept == is_met(world, job->id) && !world->jobs[job->id].runs)
        fail(world, "job %" PRIu64 " waits for '%s', the jobs on which it depends %s", job->id, reason_name(code),
             kept ? "have ended" : "have not");
}

/* As many jobs of an array are open as may be, or none has to wait. */
void check_array(const struct world *world, const struct job *job)
{
    uint32_t open = 0, most = job->wants->array_most;

    if (!most)
        return;
    for (uint64_t id = 1; id < world->next_job; id++) {
        const struct job *other = core_find_job(world->core, id);
        open += other && other->wants->array == job->wants->array && other->state != JOB_HELD && !other->array_waits;
    }
    if (open > most || (open < most && job->array_waits))
        fail(world, "job %" PRIu64 " %s, %" PRIu32 " jobs of its array are open, of %" PRIu32, job->id,
             job->array_waits ? "waits" : "does not wait", open, most);
}

void check_refused(const struct world *world, const struct record *record)
{
    const struct world_job *job = &world->jobs[record->job];
    bool in_vain = false;

    for (uint32_t i = 0; i < job->depends_count; i++)
        in_vain |= job->depends[i].on == record->refused.on && met(world, &job->depends[i]) == NEVER;
    if (record->refused.on && !in_vain)
        fail(world, "job %" PRIu64 " did not depend on job %" PRIu64 " in vain", record->job, record->refused.on);
}
