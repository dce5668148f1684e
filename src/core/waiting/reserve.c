/* How this file works: reserve_gpus asks for whom GPUs are due: the head (fifo), or chosen_fairly. choose_reserved
 * takes those that are likely to be free first. The reservation ends as the job starts or waits no more (apply.c), and
 * under fair turns after a time (until_ns). */
#include "core/waiting/reserve.h"

#include "core/apply.h"
#include "core/need/need.h"
#include "core/place.h"
#include "core/qualify.h"
#include "core/state.h"
#include "core/waiting/alike.h"
#include "core/waiting/order.h"

/* So many jobs of others may pass one whose user has nothing running. */
#define PASSED_MOST 2

/* The GPUs that are likely to have enough memory for the job first: those with the most free memory. False when the
 * node has too few that could ever take it. */
static bool choose_reserved(const struct core *core, const struct job *job, struct record_reserved *reserved)
{
    const struct gpu *chosen[RECORD_MAX_GPUS];

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        const struct gpu *gpu = core->gpus[i];
        uint32_t at;
        if (!gpu_is_for(core, job, gpu))
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

static struct job *first_starved(const struct core *core, int64_t now_ns)
{
    struct job *job = NULL;
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    for (uint32_t i = 0; i < count && !job; i++)
        job = order_first(core, lines[i], reserve_starved_ns(core, now_ns));
    return job;
}

/* The first of the user who is first in order, where he has nothing running and others' jobs, which run, have passed
 * it. Of one GPU, which it may share: to hold more free for it costs the others more than it gains (bench/fair). */
static struct job *left_behind(const struct core *core, int64_t now_ns)
{
    uint32_t count, passed = 0, i = 0;
    struct line **lines = order_lines(core, now_ns, &count);
    struct job *job;

    while (i < count && !lines[i]->user)
        i++;
    if (i == count || lines[i]->user->running)
        return NULL;
    job = order_first(core, lines[i], INT64_MAX);
    if (!job || job->wants->gpus > 1 || job_wants_idle(core, job))
        return NULL;
    for (uint32_t g = 0; g < core->gpu_count; g++)
        for (uint32_t k = 0; k < core->gpus[g]->resident_count; k++)
            passed += core->gpus[g]->residents[k]->placed_ns > job_waits_since_ns(job);
    return passed >= PASSED_MOST ? job : NULL;
}

/* No job holds GPUs free for longer than it may run, as far as that is known. */
static int64_t until_ns(const struct core *core)
{
    const struct job *job = core_job_by_id(core, core->reserved_job);
    int64_t most_ns = core->config.starvation_timeout_ns, since_ns = 0;

    if (job->wants->time_limit_ns && job->wants->time_limit_ns < most_ns)
        most_ns = job->wants->time_limit_ns;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (core->gpus[i]->reserved_for == job->id)
            since_ns = core->gpus[i]->reserved_ns;
    return since_ns + most_ns;
}

/* NULL: no other than the one that has GPUs. */
static struct job *chosen_fairly(const struct core *core, int64_t now_ns)
{
    struct job *job;

    if (core->reserved_job && now_ns < until_ns(core))
        return NULL;
    job = first_starved(core, now_ns);
    if (!job)
        job = left_behind(core, now_ns);
    return job && job->id != core->reserved_job ? job : NULL;
}

bool reserve_gpus(struct core *core, struct job *head, int64_t now_ns, struct record_list *out)
{
    struct record decision = {.type = RECORD_RESERVED, .at_ns = now_ns, .job = core->reserved_job};
    bool fair = core->config.order == ORDER_FAIR;
    struct job *job = fair ? chosen_fairly(core, now_ns) : reserve_is_starved(core, head, now_ns) ? head : NULL;

    if (fair && !job && core->reserved_job && now_ns >= until_ns(core))
        core_decided(core, out, &decision); /* of no GPUs */
    if (!job || job->id == core->reserved_job)
        return false;
    decision.job = job->id;
    return choose_reserved(core, job, &decision.reserved) && core_decided(core, out, &decision) &&
           core_place(core, job, now_ns, out); /* a GPU that was reserved for another job may be free */
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
    for (uint32_t i = 0; i < count; i++)
        if (alike_oldest_ns(lines[i]) < oldest_ns)
            oldest_ns = alike_oldest_ns(lines[i]);
    return oldest_ns + core->config.starvation_timeout_ns;
}
