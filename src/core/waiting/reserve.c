/* How this file works: reserve_gpus asks for whom GPUs are due: the head (fifo), or chosen_fairly. choose_reserved
 * takes those that are likely to be free first. The reservation ends as the job starts or waits no more
 * (apply/reserved.c), and under fair turns after a time (until_ns). There it costs its user nothing: while others wait,
 * it is refused or ended where it is in vain (is_kept_in_vain), and for starved jobs a user has one in a time
 * (was_kept_lately). */
#include "core/waiting/reserve.h"

#include "base/units.h"
#include "core/apply.h"
#include "core/need/need.h"
#include "core/place.h"
#include "core/qualify.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/eligible.h"
#include "core/waiting/order.h"

/* So many jobs of others may pass one whose user has nothing running. */
#define PASSED_MOST 2

#define LEAST_HOLD_NS (60 * NS_PER_SEC)

static bool others_wait(const struct core *core, const struct job *job, int64_t now_ns)
{
    const struct job *other = core->waiting.head; /* those apart come first */
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    for (; other && turn_is_apart(other->turn); other = other->next)
        if (other->user != job->user && job_is_eligible(core, other, NULL))
            return true;
    for (uint32_t i = 0; i < count; i++)
        if (lines[i]->user && lines[i]->user != job->user && order_first(core, lines[i], order_start, INT64_MAX))
            return true;
    return false;
}

/* Under fair turns no GPU is kept from others where jobs of the job's own user are in its way: he could keep it free
 * for as long as he likes, at no cost. */
static bool is_kept_in_vain(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return core->config.order == ORDER_FAIR && !gpu_will_be_for(core, job, gpu);
}

/* The GPUs that are likely to have enough memory for the job first: those with the most free memory. False when the
 * node has too few that could ever take it. */
static bool choose_reserved(const struct core *core, const struct job *job, int64_t now_ns,
                            struct record_reserved *reserved)
{
    const struct gpu *chosen[RECORD_MAX_GPUS];
    bool others = others_wait(core, job, now_ns);

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        const struct gpu *gpu = core->gpus[i];
        uint32_t at;
        if (!gpu_is_for(core, job, gpu) || (others && is_kept_in_vain(core, job, gpu)))
            continue;
        for (at = reserved->count; at > 0; at--) {
            const struct gpu *other = chosen[at - 1];
            if (gpu_free_bytes(core, other) >= gpu_free_bytes(core, gpu))
                break;
            if (at < job->wants->gpus)
                chosen[at] = other;
        }
        if (at < job->wants->gpus)
            chosen[at] = gpu;
        if (reserved->count < job->wants->gpus)
            reserved->count++;
    }
    for (uint32_t i = 0; i < reserved->count; i++)
        reserved->gpus[i] = chosen[i]->number;
    return reserved->count == job->wants->gpus;
}

int64_t reserve_starved_ns(const struct core *core, int64_t now_ns)
{
    return now_ns - core->config.starvation_timeout_ns;
}

bool reserve_is_starved(const struct core *core, const struct job *job, int64_t now_ns)
{
    return core->config.backfill && job_waits_since_ns(job) <= reserve_starved_ns(core, now_ns);
}

/* For each user once in that time, while others wait: keeping GPUs free costs them, however little he has them. */
static bool was_kept_lately(const struct core *core, const struct user *user, int64_t now_ns)
{
    return core->config.order == ORDER_FAIR && user && user->kept_ns > reserve_starved_ns(core, now_ns) &&
           user->kept_ns <= now_ns;
}

/* The first in order that is starved and can have GPUs reserved, but for the one that has; NULL: none. */
static struct job *first_starved(const struct core *core, int64_t now_ns, struct record_reserved *reserved)
{
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    for (uint32_t i = 0; i < count; i++) {
        struct job *job = order_first(core, lines[i], order_start, reserve_starved_ns(core, now_ns));
        if (!job)
            continue;
        *reserved = (struct record_reserved){0};
        if (job->id != core->reserved_job &&
            !(was_kept_lately(core, job->user, now_ns) && others_wait(core, job, now_ns)) &&
            choose_reserved(core, job, now_ns, reserved))
            return job;
    }
    return NULL;
}

/* How many jobs that run have come since. A job of several GPUs is counted on its first. */
static uint32_t passed_since(const struct core *core, int64_t since_ns)
{
    uint32_t passed = 0;

    for (uint32_t i = 0; i < core->gpu_count; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++)
            passed += core->gpus[i]->residents[k]->placed_ns > since_ns &&
                      core->gpus[i]->residents[k]->placements[0].gpu == i;
    return passed;
}

/* The same of those whose user has nothing running, where others' jobs have passed his first. Of one GPU, which it may
 * share: to hold more free for it costs the others more than it gains (docs/fairness.md). */
static struct job *left_behind(const struct core *core, int64_t now_ns, struct record_reserved *reserved)
{
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    for (uint32_t i = 0; i < count; i++) {
        struct job *job;
        if (!lines[i]->user)
            continue;
        if (lines[i]->behind > ORDER_BEHIND(0)) /* others may pass it, and all behind it */
            return NULL;
        if (lines[i]->user->running)
            continue;
        job = order_first(core, lines[i], order_start, INT64_MAX);
        *reserved = (struct record_reserved){0};
        if (job && job->id != core->reserved_job && job->wants->gpus == 1 && !job_wants_idle(core, job) &&
            passed_since(core, job_waits_since_ns(job)) >= PASSED_MOST && choose_reserved(core, job, now_ns, reserved))
            return job;
    }
    return NULL;
}

/* Under fair turns no job holds GPUs free for longer. */
static int64_t until_ns(const struct core *core)
{
    int64_t since_ns = 0;

    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (core->gpus[i]->reserved_for == core->reserved_job)
            since_ns = core->gpus[i]->reserved_ns;
    return since_ns +
           (core->config.starvation_timeout_ns > LEAST_HOLD_NS ? core->config.starvation_timeout_ns : LEAST_HOLD_NS);
}

int64_t reserve_until_ns(const struct core *core)
{
    return core->config.order == ORDER_FAIR ? until_ns(core) : INT64_MAX;
}

static bool is_in_vain(const struct core *core, int64_t now_ns)
{
    const struct job *job = core_job_by_id(core, core->reserved_job);
    bool in_vain = false;

    for (uint32_t i = 0; i < core->gpu_count; i++)
        in_vain |= core->gpus[i]->reserved_for == job->id && is_kept_in_vain(core, job, core->gpus[i]);
    return in_vain && others_wait(core, job, now_ns);
}

static bool is_over(const struct core *core, int64_t now_ns)
{
    int64_t left_ns = until_ns(core) - now_ns;

    return left_ns <= 0 || left_ns > core->config.starvation_timeout_ns + LEAST_HOLD_NS || /* the clock was set back */
           is_in_vain(core, now_ns);
}

static bool reserve_fairly(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct record decision = {.type = RECORD_RESERVED, .at_ns = now_ns, .job = core->reserved_job};
    struct job *job;

    if (core->reserved_job && !is_over(core, now_ns))
        return false;
    job = first_starved(core, now_ns, &decision.reserved);
    if (!job)
        job = left_behind(core, now_ns, &decision.reserved);
    if (job)
        decision.job = job->id;
    else
        decision.reserved.count = 0; /* it gives its GPUs back */
    return decision.job && core_decided(core, out, &decision) && job && core_place(core, job, now_ns, out);
}

bool reserve_gpus(struct core *core, struct job *head, int64_t now_ns, struct record_list *out)
{
    struct record decision = {.type = RECORD_RESERVED, .at_ns = now_ns, .job = head->id};

    if (core->config.order == ORDER_FAIR)
        return reserve_fairly(core, now_ns, out);
    return core->reserved_job != head->id && reserve_is_starved(core, head, now_ns) &&
           choose_reserved(core, head, now_ns, &decision.reserved) && core_decided(core, out, &decision) &&
           core_place(core, head, now_ns, out); /* a GPU that was reserved for another job may be free */
}

int64_t reserve_wake_ns(const struct core *core, int64_t now_ns)
{
    const struct job *head = order_head(core, now_ns);
    int64_t oldest_ns = INT64_MAX;
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    if (!core->config.backfill || !head)
        return INT64_MAX;
    if (core->config.order == ORDER_FIFO && core->reserved_job == head->id)
        return INT64_MAX;
    if (core->config.order == ORDER_FIFO)
        return job_waits_since_ns(head) + core->config.starvation_timeout_ns;
    if (core->reserved_job)
        return until_ns(core);
    for (uint32_t i = 0; i < count; i++) {
        int64_t line_ns = autocluster_oldest_ns(lines[i]);
        if (was_kept_lately(core, lines[i]->user, now_ns) && line_ns < lines[i]->user->kept_ns)
            line_ns = lines[i]->user->kept_ns;
        if (line_ns < oldest_ns && line_ns > reserve_starved_ns(core, now_ns)) /* nothing comes of the others */
            oldest_ns = line_ns;
    }
    return oldest_ns == INT64_MAX ? INT64_MAX : oldest_ns + core->config.starvation_timeout_ns;
}
