/* How this file works: the user's jobs of the same priority are listed by their places (list_own), those that go
 * elsewhere are taken out of the list and put in there (rearrange), and the list gets the same places again, from the
 * first to the last (give_places). A job that goes before the main queue, or is refused anyway, takes no part. */
#include "core/waiting/places.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/order.h"

struct own {
    struct job **jobs; /* owned array */
    size_t count, capacity;
};

static bool takes_part(const struct job *job)
{
    return !job->failed_on && (job->state == JOB_HELD || (job->state == JOB_QUEUED && !order_is_apart(job)));
}

static int compare_places(const void *left, const void *right)
{
    const struct job *a = *(struct job *const *)left, *b = *(struct job *const *)right;

    return a->place < b->place ? -1 : a->place > b->place;
}

static void list_own(const struct core *core, const struct job *like, struct own *own)
{
    for (struct job *job = core->jobs; job; job = job->hh.next) {
        if (job->user != like->user || job->wants->priority != like->wants->priority || !takes_part(job))
            continue;
        array_reserve(own->jobs, own->capacity, own->count + 1);
        own->jobs[own->count++] = job;
    }
    qsort(own->jobs, own->count, sizeof(struct job *), compare_places);
}

static bool goes(const struct job *job, const struct job *first, const struct record_ordered *ordered)
{
    return job == first || (first->wants->array && job->wants->array == first->wants->array && job->id > first->id &&
                            job->id <= ordered->last);
}

/* The new order; an owned array. */
static struct job **rearrange(const struct own *own, const struct job *first, const struct record_ordered *ordered)
{
    struct job **jobs = xcalloc(own->count, sizeof(struct job *));
    size_t at = 0;

    for (size_t i = 0; i <= own->count; i++) {
        bool here = ordered->where == ORDERED_FIRST  ? i == 0
                    : ordered->where == ORDERED_LAST ? i == own->count
                                                     : i < own->count && own->jobs[i]->id == ordered->before;
        for (size_t k = 0; here && k < own->count; k++)
            if (goes(own->jobs[k], first, ordered))
                jobs[at++] = own->jobs[k];
        if (i < own->count && !goes(own->jobs[i], first, ordered))
            jobs[at++] = own->jobs[i];
    }
    return jobs;
}

/* All leave their queues before the first comes back: no two have one place meanwhile. */
static void give_places(struct core *core, const struct own *own, struct job *const *jobs)
{
    uint64_t *places = xcalloc(own->count, sizeof *places);

    for (size_t i = 0; i < own->count; i++) {
        places[i] = own->jobs[i]->place;
        if (own->jobs[i] == jobs[i])
            continue;
        if (jobs[i]->autocluster)
            autocluster_leave(core, jobs[i]);
        queue_remove(jobs[i]);
    }
    for (size_t i = 0; i < own->count; i++) {
        if (own->jobs[i] == jobs[i])
            continue;
        jobs[i]->place = places[i];
        order_enter(core, jobs[i]);
    }
    core->openings++; /* a decision that is being made goes on */
    free(places);
}

static int check(const struct core *core, const struct job *job, const struct record_ordered *ordered,
                 struct error *err)
{
    const struct job *before = ordered->where == ORDERED_BEFORE ? core_job_by_id(core, ordered->before) : NULL;

    if (!takes_part(job))
        return error_set(err, EINVAL, "job %" PRIu64 " goes before the main queue, and has no place in it", job->id);
    if (ordered->where > ORDERED_BEFORE || ordered->last < job->id)
        return error_set(err, EINVAL, "job %" PRIu64 " cannot be put at place %" PRIu32, job->id, ordered->where);
    if (ordered->where != ORDERED_BEFORE)
        return 0;
    if (!before || before->user != job->user)
        return error_set(err, EINVAL,
                         "job %" PRIu64 " goes before another of its user's waiting jobs only: job %" PRIu64 " is none",
                         job->id, ordered->before);
    if (!takes_part(before))
        return error_set(err, EINVAL, "job %" PRIu64 " does not wait in the main queue", before->id);
    if (before->wants->priority != job->wants->priority)
        return error_set(err, EINVAL,
                         "job %" PRIu64 " has priority %" PRId32 " and job %" PRIu64 " %" PRId32
                         ": the higher one goes first",
                         job->id, job->wants->priority, before->id, before->wants->priority);
    return goes(before, job, ordered) ? error_set(err, EINVAL, "job %" PRIu64 " cannot go before itself", before->id)
                                      : 0;
}

int place_put(struct core *core, struct job *job, const struct record_ordered *ordered, struct error *err)
{
    struct own own = {0};
    struct job **jobs;
    int status = check(core, job, ordered, err);

    if (status)
        return status;
    list_own(core, job, &own);
    jobs = rearrange(&own, job, ordered);
    give_places(core, &own, jobs);
    free(jobs);
    free(own.jobs);
    return 0;
}
