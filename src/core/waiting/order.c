/* How this file works: a job that begins to wait gets a turn, the key of the one order of all waiting jobs
 * (core.waiting). `classes` says of which class it is: the first row that holds. Within a class the smaller place goes
 * first. The jobs that nothing tells apart stand in trees by the same key (waiting/alike.h), in which the head and all
 * later candidates are found (waiting/backfill.c).
 *
 * To add a class: a member of enum order_class (job.h), where it goes, and a row. To add a part of the key, as a
 * priority or a share: a member of struct order_turn, its value in turn_of, and a line in turn_is_before (order.h). A
 * job whose key changes leaves its like and its queue first (alike_leave, queue_remove), and enters again. */
#include "core/waiting/order.h"

#include "core/gpus/closing.h"
#include "core/state.h"
#include "core/waiting/alike.h"
#include "core/waiting/eligible.h"

/* A cluster's scheduler holds resources for it meanwhile. */
static bool is_lease(const struct job *job)
{
    return job->wants->external;
}

/* It has had a run (thesis 6.2.3). It blocks the main queue, unless there is backfill. */
static bool is_retry(const struct job *job)
{
    return job->retry;
}

static bool is_any(const struct job *job)
{
    (void)job;
    return true;
}

static const struct {
    enum order_class class;
    bool (*holds)(const struct job *job);
    bool by_arrival; /* in the order in which they came; else each keeps its place
                      */
} classes[] = {
    {CLASS_LEASE, is_lease, true},
    {CLASS_RETRY, is_retry, true},
    {CLASS_MAIN, is_any, false},
};

/* A held job keeps its place in the main queue. */
static size_t class_of(const struct job *job)
{
    size_t i = 0;

    while (job->state == JOB_HELD ? classes[i].by_arrival : !classes[i].holds(job))
        i++;
    return i;
}

static struct order_turn turn_of(struct core *core, const struct job *job)
{
    size_t i = class_of(job);

    return (struct order_turn){.class = classes[i].class,
                               .place = classes[i].by_arrival ? ++core->last_arrival : job->place};
}

bool order_is_apart(const struct job *job)
{
    return classes[class_of(job)].class < CLASS_MAIN;
}

void order_enter(struct core *core, struct job *job)
{
    job->turn = turn_of(core, job);
    queue_insert(job->state == JOB_HELD ? &core->held : &core->waiting, job);
    if (job->state != JOB_HELD)
        alike_join(core, job);
    closing_note_avoided(core, job);
}

struct job *order_head(const struct core *core)
{
    const struct search any = {.since_ns = INT64_MAX};
    const struct alike *alike;

    if (!core->waiting.head || job_is_eligible(core, core->waiting.head, NULL))
        return core->waiting.head; /* as a rule */
    alike = alike_next(core, order_start, &any);
    while (alike && !job_is_eligible(core, alike->first, NULL)) /* jobs that are alike all are, or none */
        alike = alike_next(core, alike->turn, &any);
    return alike ? alike->first : NULL;
}

static const struct job *before(const struct job *job)
{
    const struct job *other = job->previous;

    return other && turn_is_apart(other->turn) == turn_is_apart(job->turn) ? other : NULL;
}

uint64_t order_ahead(const struct core *core, const struct job *job)
{
    struct core_asked *asked = core->asked;
    uint64_t ahead = 0;

    /* Listing the queue asks for one job after the other: most of the last answer
     * serves the next. */
    if (asked->applied == core->applied && asked->job == job)
        return asked->ahead;
    if (asked->applied == core->applied && asked->job && asked->job == before(job))
        ahead = asked->ahead + job_is_eligible(core, asked->job, NULL);
    else
        for (const struct job *other = before(job); other; other = before(other))
            ahead += job_is_eligible(core, other, NULL);
    *asked = (struct core_asked){.applied = core->applied, .job = job, .ahead = ahead};
    return ahead;
}
