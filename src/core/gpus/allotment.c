/* How this file works: core->allotments is a list of at most ALLOTMENTS_MOST, looked through each time; without any,
 * each question costs a comparison. is_in_the_way() is the rule. Each record moves core->allotted_ns to its time, and
 * opens all GPUs: one may be free for others, or a job that waited for one may take a smaller instance now. Where jobs
 * wait, left_before_ns() says when a record is due: never by the jobs, of which a user may have thousands, all unlike.
 */
#include "core/gpus/allotment.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/share/sharing.h"
#include "core/state.h"

const struct record_allotted *core_allotments(const struct core *core, uint32_t *count)
{
    *count = core->allotment_count;
    return core->allotments;
}

uint32_t core_next_allotment(const struct core *core)
{
    return core->last_allotment + 1;
}

/* ---- The rule ---- */

static bool has(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static bool is_for(const struct record_allotted *allotted, uint32_t uid)
{
    return has(allotted->users, allotted->user_count, uid);
}

/* What is left before its beginning, in steps of seconds or of less than 1/32: so long may a job be there. So the
 * answers turn seldom, less than a thousand times in five years. */
static int64_t left_before_ns(const struct record_allotted *allotted, int64_t now_ns)
{
    int64_t left_ns = allotted->from_ns - now_ns, step_ns = NS_PER_SEC;

    while (64 * step_ns <= left_ns)
        step_ns *= 2;
    return left_ns - left_ns % step_ns;
}

/* One that was submitted since then is as of its submission: a record for each that comes too late would cost a look at
 * all others. */
static int64_t as_of_ns(const struct core *core, const struct job *job)
{
    return job->submitted_ns > core->allotted_ns ? job->submitted_ns : core->allotted_ns;
}

static bool is_in_the_way(const struct core *core, const struct record_allotted *allotted, const struct job *job)
{
    int64_t now_ns = as_of_ns(core, job), limit_ns = job->wants->time_limit_ns;

    return now_ns < allotted->until_ns && !is_for(allotted, job->wants->uid) &&
           (now_ns >= allotted->from_ns || limit_ns == 0 || limit_ns > left_before_ns(allotted, now_ns));
}

const struct record_allotted *allotment_against(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    const struct record_allotted *first = NULL;

    for (uint32_t i = 0; i < core->allotment_count; i++) {
        const struct record_allotted *allotted = &core->allotments[i];
        if (has(allotted->gpus, allotted->gpu_count, gpu->number) && is_in_the_way(core, allotted, job) &&
            (!first || allotted->from_ns < first->from_ns))
            first = allotted;
    }
    return first;
}

static void note(const struct record_allotted *allotted, uint32_t gpu, struct reason *reason)
{
    reason->gpu = gpu;
    reason->other = allotted->users[0];
    reason->ahead = allotted->user_count - 1;
    reason->until_ns = allotted->until_ns;
}

static void note_against(const struct core *core, const struct job *job, const struct record_allotted *allotted,
                         uint32_t gpu, struct reason *reason)
{
    note(allotted, gpu, reason);
    reason->from_ns = allotted->from_ns > as_of_ns(core, job) ? allotted->from_ns : 0;
    reason->limit_ns = reason->from_ns ? left_before_ns(allotted, as_of_ns(core, job)) : 0;
}

void allotment_note(const struct core *core, const struct job *job, const struct gpu *gpu, struct reason *reason)
{
    note_against(core, job, allotment_against(core, job, gpu), gpu->number, reason);
}

bool allotment_keeps(const struct core *core, const struct job *job, struct reason *why)
{
    uint32_t left = 0, kept = 0;

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        const struct record_allotted *against;
        if (!gpu_could_take(job, core->gpus[i]))
            continue;
        against = allotment_against(core, job, core->gpus[i]);
        left += !against;
        if (against && (kept++ == 0 || against->until_ns < why->until_ns))
            note_against(core, job, against, i, why);
    }
    return left < job->wants->gpus && left + kept >= job->wants->gpus;
}

bool allotment_keeps_still(const struct core *core, const struct job *job, int64_t now_ns, struct reason *why)
{
    for (uint32_t i = 0; i < core->allotment_count && !job->wants->external; i++) {
        const struct record_allotted *allotted = &core->allotments[i];
        if (now_ns < allotted->from_ns || now_ns >= allotted->until_ns || is_for(allotted, job->wants->uid))
            continue;
        for (uint32_t k = 0; k < job->placement_count; k++)
            if (has(allotted->gpus, allotted->gpu_count, job->placements[k].gpu)) {
                note(allotted, job->placements[k].gpu, why);
                return true;
            }
    }
    return false;
}

static void sooner(int64_t *next_ns, int64_t candidate_ns)
{
    if (candidate_ns < *next_ns)
        *next_ns = candidate_ns;
}

int64_t allotment_next_ns(const struct core *core)
{
    int64_t next_ns = INT64_MAX;

    for (uint32_t i = 0; i < core->allotment_count; i++) {
        const struct record_allotted *allotted = &core->allotments[i];
        sooner(&next_ns, allotted->until_ns);
        if (allotted->from_ns <= core->allotted_ns)
            continue;
        sooner(&next_ns, allotted->from_ns);
        if (core->waiting.head)
            sooner(&next_ns, allotted->from_ns - left_before_ns(allotted, core->allotted_ns) + 1);
    }
    return next_ns;
}

/* ---- Records ---- */

static const struct record_allotted *overlapping(const struct core *core, const struct record_allotted *allotted,
                                                 uint32_t *gpu)
{
    for (uint32_t i = 0; i < core->allotment_count; i++) {
        const struct record_allotted *other = &core->allotments[i];
        for (uint32_t k = 0; k < allotted->gpu_count; k++)
            if (allotted->from_ns < other->until_ns && other->from_ns < allotted->until_ns &&
                has(other->gpus, other->gpu_count, allotted->gpus[k])) {
                *gpu = allotted->gpus[k];
                return other;
            }
    }
    return NULL;
}

static int check_lists(const struct core *core, const struct record_allotted *allotted, struct error *err)
{
    if (allotted->gpu_count < 1 || allotted->gpu_count > RECORD_MAX_GPUS)
        return error_set(err, EINVAL, "a reservation has 1 to %d GPUs, not %" PRIu32, RECORD_MAX_GPUS,
                         allotted->gpu_count);
    if (allotted->user_count < 1 || allotted->user_count > ALLOTMENT_USERS)
        return error_set(err, EINVAL, "a reservation is for 1 to %d users, not %" PRIu32, ALLOTMENT_USERS,
                         allotted->user_count);
    for (uint32_t i = 0; i < allotted->gpu_count; i++) {
        if (allotted->gpus[i] >= core->gpu_count)
            return error_set(err, ENOENT, "there is no GPU %" PRIu32 ": carma gpus lists them", allotted->gpus[i]);
        if (has(allotted->gpus, i, allotted->gpus[i]))
            return error_set(err, EINVAL, "GPU %" PRIu32 " is named twice", allotted->gpus[i]);
    }
    return 0;
}

static int check(const struct core *core, const struct record_allotted *allotted, struct error *err)
{
    const struct record_allotted *other;
    uint32_t gpu;
    int status = check_lists(core, allotted, err);

    if (status)
        return status;
    if (!memchr(allotted->why, '\0', sizeof allotted->why))
        return error_set(err, EINVAL, "the reason does not end within %zu bytes: shorten it", sizeof allotted->why);
    if (allotted->from_ns < 0 || allotted->until_ns <= allotted->from_ns ||
        allotted->until_ns - allotted->from_ns > ALLOTMENT_MOST_NS)
        return error_set(err, EINVAL, "a reservation lasts at most 366 days, and ends after its beginning");
    if (core->allotment_count == ALLOTMENTS_MOST)
        return error_set(err, ENOSPC, "there are %d reservations, the most that carma keeps: take one back",
                         ALLOTMENTS_MOST);
    other = overlapping(core, allotted, &gpu);
    return other ? error_set(err, EEXIST,
                             "GPU %" PRIu32 " is reserved at that time already: 'carma admin unreserve %" PRIu32
                             "' takes that back",
                             gpu, other->number)
                 : 0;
}

static void add(struct core *core, const struct record_allotted *allotted)
{
    array_reserve(core->allotments, core->allotment_capacity, core->allotment_count + 1);
    core->allotments[core->allotment_count++] = *allotted;
}

static int begin(struct core *core, const struct record *record, struct error *err)
{
    const struct record_allotted *allotted = &record->allotted;
    int status = check(core, allotted, err);

    if (status)
        return status;
    if (allotted->number != core_next_allotment(core))
        return error_set(err, EINVAL, "the next reservation is number %" PRIu32 ", not %" PRIu32,
                         core_next_allotment(core), allotted->number);
    if (allotted->until_ns <= record->at_ns)
        return error_set(err, EINVAL, "the reservation would be over already: name a later time");
    if (allotted->from_ns - record->at_ns > ALLOTMENT_AHEAD_NS)
        return error_set(err, EINVAL, "a reservation begins within five years from now");
    core->last_allotment = allotted->number;
    add(core, allotted);
    return 0;
}

/* Those that are over at that time; with `number` that one. */
static bool drop(struct core *core, uint32_t number, int64_t at_ns)
{
    uint32_t kept = 0, before = core->allotment_count;

    for (uint32_t i = 0; i < before; i++)
        if (number ? core->allotments[i].number != number : core->allotments[i].until_ns > at_ns)
            core->allotments[kept++] = core->allotments[i];
    core->allotment_count = kept;
    return kept < before;
}

int allotment_apply(struct core *core, const struct record *record, struct error *err)
{
    int status = 0;

    if (record->type == RECORD_GPUS_ALLOTTED)
        status = begin(core, record, err);
    else if (record->type == RECORD_ALLOTMENTS_DUE)
        drop(core, 0, record->at_ns);
    else if (!record->allotment_ended.number || !drop(core, record->allotment_ended.number, record->at_ns))
        status = error_set(err, ENOENT, "there is no reservation %" PRIu32 ": 'carma admin reserve' lists them",
                           record->allotment_ended.number);
    if (status)
        return status;
    core->allotted_ns = record->at_ns;
    gpus_open(core);
    return 0;
}

int allotment_restore(struct core *core, const struct record_allotted *allotted, struct error *err)
{
    uint32_t before = core->allotment_count ? core->allotments[core->allotment_count - 1].number : 0;
    int status = check(core, allotted, err);

    if (status)
        return status;
    if (allotted->number <= before || allotted->number > core->last_allotment)
        return error_set(err, EINVAL, "reservation %" PRIu32 " has another's number", allotted->number);
    add(core, allotted);
    return 0;
}
