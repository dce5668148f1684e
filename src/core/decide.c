/* How this file works: core_decide asks in a fixed order what is due now: leases and late jobs to expire, verdicts on
 * crashes and signals, reservations to correct or shrink, idle jobs to warn or end, closed GPUs to try, and placements:
 * for jobs in order (order.c), if eligible (eligible.c), choose by need (place.c), as waiting/backfill.c goes through
 * them. Each decision is applied at once (apply.c: core_decided). core_next_wake_ns names the next time at which one of
 * these may be due by itself: a decision that depends on time has a line in both. */
#include <string.h>

#include "base/memory.h"
#include "core/apply.h"
#include "core/crash.h"
#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"
#include "core/idle.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/need/overuse.h"
#include "core/place.h"
#include "core/share/seen.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/waiting/backfill.h"
#include "core/waiting/order.h"
#include "core/waiting/reserve.h"

static void decide_undecided(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct record verdict;
    struct job *next;

    for (struct job *job = core->undecided.head; job; job = next) {
        next = job->next;
        if (job->state == JOB_CRASHED) {
            crash_judge(core, job, now_ns, &verdict);
            core_decided(core, out, &verdict);
        } else if (job_state_stops(job->state) && now_ns >= job->run->signal_retry_ns) {
            core_decided(core, out, &(struct record){.type = RECORD_SIGNALLED, .at_ns = now_ns, .job = job->id});
        }
    }
}

/* The first lease in the queue: they stand together; NULL: none waits. */
static struct job *first_lease(const struct core *core)
{
    struct job *job = core->waiting.head;

    while (job && job->turn.class < CLASS_LEASE)
        job = job->next;
    return job && job->turn.class == CLASS_LEASE ? job : NULL;
}

/* INT64_MAX: never. */
static int64_t expires_ns(const struct job *job)
{
    return job->wants->max_wait_ns ? job->submitted_ns + job->wants->max_wait_ns : INT64_MAX;
}

/* The one who asked for the lease has given it up by then. */
static void expire_leases(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct job *next;

    for (struct job *job = first_lease(core); job && job->turn.class == CLASS_LEASE; job = next) {
        next = job->next;
        if (now_ns >= expires_ns(job))
            core_decided(core, out, &(struct record){.type = RECORD_EXPIRED, .at_ns = now_ns, .job = job->id});
    }
}

/* Of more in a decision the daemon would answer nobody for long: the others follow a moment later. */
#define AT_ONCE      64
#define TOLD_AT_ONCE 200
#define PAUSE_NS     NS_PER_MS

/* Jobs whose dependencies have come true or never will, where one ended for which many waited. */
static void tell_dependents(struct core *core, int64_t now_ns, struct record_list *out)
{
    if (core->tellers)
        core_decided(core, out,
                     &(struct record){.type = RECORD_TOLD, .at_ns = now_ns, .told = {.count = TOLD_AT_ONCE}});
}

/* Those that depended in vain; and so on. `left`: of AT_ONCE. */
static void refuse_dependents(struct core *core, int64_t now_ns, size_t *left, struct record_list *out)
{
    while (core->vain.head && *left > 0) {
        const struct job *job = core->vain.head;
        struct record refused = {
            .type = RECORD_REFUSED, .at_ns = now_ns, .job = job->id, .refused = {.on = job->failed_on}};
        --*left;
        core_decided(core, out, &refused);
    }
}

/* Jobs whose time has come stand in the queue. */
static void begin_due(struct core *core, int64_t now_ns, size_t *left, struct record_list *out)
{
    struct job *next;

    if (now_ns < core->next_begin_ns || *left == 0)
        return;
    core->next_begin_ns = INT64_MAX;
    for (struct job *job = core->kept.head; job; job = next) {
        next = job->next;
        if (job->depends || !job->begin_ns)
            continue;
        if (job->begin_ns <= now_ns && --*left == 0) {
            core->next_begin_ns = now_ns; /* and of those behind it */
            next = NULL;
        }
        if (job->begin_ns <= now_ns)
            core_decided(core, out, &(struct record){.type = RECORD_DUE, .at_ns = now_ns, .job = job->id});
        else if (job->begin_ns < core->next_begin_ns)
            core->next_begin_ns = job->begin_ns;
    }
}

/* All that are due are found before the first goes: each takes those along that depended on it. */
static void expire_late_of(struct core *core, const struct queue *queue, int64_t now_ns, size_t *left,
                           struct record_list *out)
{
    uint64_t late[AT_ONCE];
    size_t count = 0;

    for (const struct job *job = queue->head; job; job = job->next)
        if (now_ns > job_latest_start_ns(job) && count < *left)
            late[count++] = job->id;
        else if (job_latest_start_ns(job) < core->next_late_ns)
            core->next_late_ns = job_latest_start_ns(job);
    *left -= count;
    for (size_t i = 0; i < count; i++)
        if (!core_job_by_id(core, late[i])->failed_on)
            core_decided(core, out, &(struct record){.type = RECORD_EXPIRED, .at_ns = now_ns, .job = late[i]});
}

/* Jobs that would end after their deadlines are not started. */
static void expire_late(struct core *core, int64_t now_ns, size_t *left, struct record_list *out)
{
    if (now_ns <= core->next_late_ns)
        return;
    core->next_late_ns = INT64_MAX;
    expire_late_of(core, &core->waiting, now_ns, left, out);
    expire_late_of(core, &core->kept, now_ns, left, out);
}

/* It was started by a guess, and has an estimate now. */
static void correct_guess(struct core *core, const struct job *job, int64_t now_ns, struct record_list *out)
{
    struct record corrected = {.type = RECORD_SHRUNK, .at_ns = now_ns, .job = job->id};

    corrected.shrunk.reservation_source = SOURCE_ESTIMATED;
    corrected.shrunk.reserved_bytes = need_estimated(core, job);
    if (job->reserved_bytes >= 0 && corrected.shrunk.reserved_bytes > job->reserved_bytes)
        corrected.type = RECORD_GROWN; /* of the same members */
    core_decided(core, out, &corrected);
}

/* GROWN for each job that has outgrown its reservation; GROWN or SHRUNK for each that was started by a guess and has
 * been estimated since. */
static void correct_reservations(struct core *core, int64_t now_ns, struct record_list *out)
{
    if (!core->corrections_due)
        return;
    core->corrections_due = false;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++) {
            const struct job *job = core->gpus[i]->residents[k];
            struct record grown = {.type = RECORD_GROWN, .at_ns = now_ns, .job = job->id};
            if (job->wants->request_bytes >= 0 && job_need_is_unknown(job))
                correct_guess(core, job, now_ns, out);
            grown.grown.reservation_source = SOURCE_OBSERVED;
            grown.grown.reserved_bytes = need_observed(core, job);
            if (job->reserved_bytes >= 0 && overuse_is_beyond(grown.grown.reserved_bytes, job->reserved_bytes))
                core_decided(core, out, &grown);
        }
}

/* One that stands still does not show what it needs. */
static struct job *next_to_shrink(const struct core *core)
{
    struct job *job = core->shrinking.head;

    while (job && job->state == JOB_SUSPENDED)
        job = job->next;
    return job;
}

static void shrink_reservations(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct job *job;

    while ((job = next_to_shrink(core)) && now_ns - job->run->first_use_ns >= core->config.shrink_after_ns) {
        struct record shrunk = {
            .type = RECORD_SHRUNK, .at_ns = now_ns, .job = job->id, .shrunk.reservation_source = SOURCE_OBSERVED};

        shrunk.shrunk.reserved_bytes = need_settled(core, job);
        if ((job->reserved_bytes >= 0 && shrunk.shrunk.reserved_bytes >= job->reserved_bytes) ||
            core->config.shrink_after_ns == 0)
            queue_remove(job);
        else if (!core_decided(core, out, &shrunk))
            return;
    }
}

/* Only a report, or another bound, makes that due. */
static void move_off(struct core *core, int64_t now_ns, struct record_list *out)
{
    if (!core->moves_due)
        return;
    core->moves_due = false;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++) {
            const struct job *slowed = core->gpus[i]->residents[k], *job = seen_to_move(core, slowed);
            struct record moved = {.type = RECORD_MOVED, .at_ns = now_ns};
            if (!job)
                continue;
            moved.job = job->id;
            moved.moved = (struct record_moved){.slowed = slowed->id,
                                                .slowed_permille = slowed->run->slowed_permille,
                                                .bound_permille = job_slowdown_bound(core, slowed)};
            core_decided(core, out, &moved);
        }
}

/* One step of a job at a time: a warning leaves time to act. */
static void end_idle(struct core *core, int64_t now_ns, struct record_list *out)
{
    if (now_ns < core->next_idle_ns)
        return;
    core->next_idle_ns = INT64_MAX;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++) {
            const struct job *job = core->gpus[i]->residents[k];
            struct record idle = {.type = RECORD_IDLE, .at_ns = now_ns, .job = job->id};
            if (idle_due_ns(job) <= now_ns) {
                idle.idle = idle_next_step(job, now_ns);
                core_decided(core, out, &idle);
            }
            if (idle_due_ns(job) < core->next_idle_ns)
                core->next_idle_ns = idle_due_ns(job);
        }
}

/* GPUs whose new job has settled are open again, without a record. */
static void open_settled(struct core *core, int64_t now_ns)
{
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        struct gpu *gpu = core->gpus[i];
        if (gpu_settling(core, gpu, now_ns)) {
            gpu->opened_settled_ns = 0; /* with another clock or setting it was open before */
        } else if (gpu->settling_job && gpu->opened_settled_ns != gpu->closed_until_ns) {
            gpu->opened_settled_ns = gpu->closed_until_ns;
            gpu_opens(core, gpu);
        }
    }
}

static void open_closed(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct record tried = {.type = RECORD_GPU_TRIED, .at_ns = now_ns};

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        tried.gpu.gpu = i;
        if (closing_next_ns(core->gpus[i]) && closing_next_ns(core->gpus[i]) <= now_ns)
            core_decided(core, out, &tried);
    }
}

static void look_at_allotments(struct core *core, int64_t now_ns, struct record_list *out)
{
    if (core->allotment_count && allotment_next_ns(core) <= now_ns)
        core_decided(core, out, &(struct record){.type = RECORD_ALLOTMENTS_DUE, .at_ns = now_ns});
}

/* The thesis's loop takes its time over a decision that places nothing, too. */
static void wait_for_next(struct core *core, int64_t now_ns, struct record_list *out)
{
    const struct job *head = order_head(core, now_ns);
    struct record waited = {.type = RECORD_WAITED, .at_ns = now_ns};

    if (!core->config.paced || !head || !core_decision_due(core, now_ns))
        return;
    waited.waited.until_ns =
        now_ns + core->config.decide_period_ns + (job_wants_idle(core, head) ? 0 : core->config.collocate_extra_ns);
    if (waited.waited.until_ns > now_ns)
        core_decided(core, out, &waited);
}

void core_decide(struct core *core, int64_t now_ns, struct record_list *out)
{
    size_t left = AT_ONCE;
    uint64_t openings;
    bool moved;

    closing_end_avoided(core, now_ns);
    expire_leases(core, now_ns, out);
    decide_undecided(core, now_ns, out);
    tell_dependents(core, now_ns, out);
    expire_late(core, now_ns, &left, out);
    refuse_dependents(core, now_ns, &left, out);
    begin_due(core, now_ns, &left, out);
    correct_reservations(core, now_ns, out);
    shrink_reservations(core, now_ns, out);
    move_off(core, now_ns, out);
    end_idle(core, now_ns, out);
    open_closed(core, now_ns, out);
    look_at_allotments(core, now_ns, out);
    if (!order_head(core, now_ns))
        return;
    if (core->settling_count)
        open_settled(core, now_ns);
    do { /* a placement that ends a reservation frees memory for jobs examined before */
        openings = core->openings;
        moved = backfill_pass(core, now_ns, out);
        refuse_dependents(core, now_ns, &left, out);
        begin_due(core, now_ns, &left, out);
        look_at_allotments(core, now_ns, out); /* as one that waits now may end too late */
    } while (moved || core->openings != openings);
    wait_for_next(core, now_ns, out);
}

/* Of those that the last decision left. */
static bool any_is_due(const struct core *core, int64_t now_ns)
{
    const struct job *job = core->next_begin_ns <= now_ns ? core->kept.head : NULL;

    while (job && (job->depends || !job->begin_ns || job->begin_ns > now_ns))
        job = job->next;
    return job;
}

/* The next job's time to begin. Exact, as is the next, also where the cache has lost it: a restored core wakes then,
 * too. */
static int64_t next_begin_ns(const struct core *core)
{
    int64_t begin_ns = INT64_MAX;

    if (core->next_begin_ns > INT64_MIN)
        return core->next_begin_ns;
    for (const struct job *job = core->kept.head; job; job = job->next)
        if (!job->depends && job->begin_ns && job->begin_ns < begin_ns)
            begin_ns = job->begin_ns;
    return begin_ns;
}

/* The time when a job becomes too late. */
static int64_t next_late_ns(const struct core *core)
{
    const struct queue *const queues[] = {&core->waiting, &core->kept};
    int64_t late_ns = INT64_MAX;

    if (core->next_late_ns > INT64_MIN)
        return core->next_late_ns;
    for (size_t i = 0; i < array_size(queues); i++)
        for (const struct job *job = queues[i]->head; job; job = job->next)
            if (job_latest_start_ns(job) < late_ns)
                late_ns = job_latest_start_ns(job);
    return late_ns;
}

static int64_t next_idle_ns(const struct core *core)
{
    int64_t idle_ns = INT64_MAX;

    for (uint32_t i = 0; i < core->gpu_count && core->next_idle_ns < INT64_MAX; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++)
            if (idle_due_ns(core->gpus[i]->residents[k]) < idle_ns)
                idle_ns = idle_due_ns(core->gpus[i]->residents[k]);
    return idle_ns;
}

static void earlier(int64_t *wake_ns, int64_t candidate_ns, int64_t now_ns)
{
    if (candidate_ns > now_ns && candidate_ns < *wake_ns)
        *wake_ns = candidate_ns;
}

int64_t core_next_wake_ns(const struct core *core, int64_t now_ns)
{
    int64_t wake_ns = INT64_MAX, late_ns = next_late_ns(core);
    const struct job *shrinks;

    for (const struct job *job = core->undecided.head; job; job = job->next)
        earlier(&wake_ns, job->run->signal_retry_ns, now_ns);
    if (core->tellers || core->vain.head || any_is_due(core, now_ns) || late_ns < now_ns)
        earlier(&wake_ns, now_ns + PAUSE_NS, now_ns);
    for (const struct job *job = first_lease(core); job && job->turn.class == CLASS_LEASE; job = job->next)
        earlier(&wake_ns, expires_ns(job), now_ns);
    earlier(&wake_ns, next_begin_ns(core), now_ns);
    if (core->allotment_count)
        earlier(&wake_ns, allotment_next_ns(core), now_ns);
    earlier(&wake_ns, next_idle_ns(core), now_ns);
    if (late_ns < INT64_MAX)
        earlier(&wake_ns, late_ns + 1, now_ns);
    if (!order_head(core, now_ns))
        return wake_ns;
    earlier(&wake_ns, core->next_decision_ns, now_ns);
    earlier(&wake_ns, reserve_wake_ns(core, now_ns), now_ns);
    if ((shrinks = next_to_shrink(core)))
        earlier(&wake_ns, shrinks->run->first_use_ns + core->config.shrink_after_ns, now_ns);
    for (uint32_t i = 0; i < core->gpu_count && core->settling_count; i++)
        if (core->gpus[i]->settling_job)
            earlier(&wake_ns, core->gpus[i]->closed_until_ns, now_ns);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        earlier(&wake_ns, closing_next_ns(core->gpus[i]), now_ns);
    for (const struct job *job = core->waiting.head; job && turn_is_apart(job->turn); job = job->next)
        earlier(&wake_ns, closing_avoids_until_ns(core, job), now_ns);
    return wake_ns;
}
