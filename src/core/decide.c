/* What follows from the state: verdicts on crashed jobs, signals, and placements in FIFO order. */
#include <string.h>

#include "core/core_internal.h"

const struct job *core_head(const struct core *core)
{
    /* Thesis 6.2.3: a waiting recovery job goes before the main queue, and blocks it. */
    return core->recovering.head ? core->recovering.head : core->waiting.head;
}

bool job_wants_idle(const struct core *core, const struct job *job)
{
    /* Under reservations a job whose need nobody knows can only be given a whole GPU. */
    bool unknown = core->config.memory_view == MEMORY_RESERVE && job->claim_bytes < 0;

    return job->wants.exclusive || job->recovery || !core->policy->shares || unknown;
}

bool gpu_fits_idle(const struct job *job, const struct gpu *gpu)
{
    return gpu_idle(gpu) && job->claim_bytes <= gpu_idle_bytes(gpu);
}

int64_t job_needed_bytes(const struct core *core, const struct job *job)
{
    if (core->policy->waives_load && core->config.memory_view == MEMORY_MONITOR)
        return 0;
    if (job->claim_bytes < 0) /* thesis 6.2.2: the floor stands in for an estimate */
        return core->config.floor_bytes;
    /* gpu_free_bytes has taken the margin off already under reservations */
    return job->claim_bytes + (core->config.memory_view == MEMORY_MONITOR ? core->config.margin_bytes : 0);
}

uint32_t gpu_verdict(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t now_ns)
{
    if (gpu->lost)
        return REASON_GPUS_LOST;
    if (!gpu->measured)
        return REASON_NOT_MEASURED;
    if (gpu_fits_idle(job, gpu))
        return REASON_NONE;
    if (gpu_exclusive_resident(gpu))
        return REASON_EXCLUSIVE;
    if (gpu->resident_count >= core->config.max_jobs_per_gpu)
        return REASON_FULL;
    if (gpu_settling(gpu, now_ns))
        return REASON_SETTLING;
    if (gpu_free_bytes(core, gpu) < job_needed_bytes(core, job))
        return REASON_MEMORY;
    if (core->policy->waives_load || core->config.smact_cap_permille >= 1000)
        return REASON_NONE;
    if (gpu->smact_permille < 0)
        return REASON_NOT_MEASURED;
    return gpu->smact_permille <= core->config.smact_cap_permille ? REASON_NONE : REASON_SM_ACTIVITY;
}

/* The first `wanted` GPUs that are idle, in index order; false when there are fewer. */
static bool choose_idle(const struct core *core, const struct job *job, struct record_placed *placed)
{
    placed->count = 0;
    for (uint32_t i = 0; i < core->gpu_count && placed->count < job->wants.gpus; i++)
        if (gpu_fits_idle(job, &core->gpus[i]))
            placed->gpus[placed->count++] = i;
    return placed->count == job->wants.gpus;
}

/* The best `wanted` of the GPUs that qualify, best first: all must qualify at once. */
static bool choose_shared(const struct core *core, const struct job *job, int64_t now_ns, struct record_placed *placed)
{
    int64_t ranks[RECORD_MAX_GPUS];

    placed->count = 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        uint32_t at;
        int64_t rank;
        if (gpu_verdict(core, job, &core->gpus[i], now_ns) != REASON_NONE)
            continue;
        rank = core->policy->rank(core, &core->gpus[i]);
        if (placed->count == job->wants.gpus && rank >= ranks[placed->count - 1])
            continue;
        if (placed->count < job->wants.gpus)
            placed->count++;
        for (at = placed->count - 1; at > 0 && rank < ranks[at - 1]; at--) {
            ranks[at] = ranks[at - 1];
            placed->gpus[at] = placed->gpus[at - 1];
        }
        ranks[at] = rank;
        placed->gpus[at] = i;
    }
    return placed->count == job->wants.gpus;
}

static bool choose_gpus(const struct core *core, const struct job *job, int64_t now_ns, struct record_placed *placed)
{
    bool idle_only = job_wants_idle(core, job);

    if ((idle_only || core->policy->idle_first) && choose_idle(core, job, placed))
        return true;
    return !idle_only && choose_shared(core, job, now_ns, placed);
}

/* A decision is a record like any other: it changes the state only by being applied. */
static bool decide(struct core *core, struct record_list *out, const struct record *decision)
{
    if (core_apply(core, decision, NULL) != 0)
        return false;
    record_list_add(out, decision);
    return true;
}

static void judge_crash(struct core *core, const struct job *job, int64_t now_ns, struct record_list *out)
{
    /* Alone on its GPUs and crashed all the same: that run was the proof that it does not fit. The first time it
     * gets the benefit of the doubt, since memory of an earlier job may have been on its way out. */
    bool hopeless = job->crashed_alone && job->recovery;
    struct record verdict = {.at_ns = now_ns, .job = job->id};

    if (hopeless || job->crashes > core->config.max_recoveries) {
        verdict.type = RECORD_GAVE_UP;
    } else {
        verdict.type = RECORD_REQUEUED;
        verdict.requeued = (struct record_requeued){.recovery = true, .crashes = job->crashes};
    }
    decide(core, out, &verdict);
}

static void decide_undecided(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct job *next;

    for (struct job *job = core->undecided.head; job; job = next) {
        next = job->next;
        if (job->state == JOB_CRASHED)
            judge_crash(core, job, now_ns, out);
        else if (now_ns >= job->signal_retry_ns)
            decide(core, out, &(struct record){.type = RECORD_SIGNALLED, .at_ns = now_ns, .job = job->id});
    }
}

static bool place_head(struct core *core, int64_t now_ns, struct record_list *out)
{
    const struct job *job = core_head(core);
    struct record decision = {.type = RECORD_PLACED, .at_ns = now_ns};
    struct record_placed *placed = &decision.placed;
    struct reason why;

    if (!job)
        return false;
    decision.job = job->id;
    if (!core_could_ever_run(core, &job->wants, &why)) {
        decision.type = RECORD_REFUSED;
        return decide(core, out, &decision);
    }
    if (now_ns < core->next_decision_ns || !choose_gpus(core, job, now_ns, placed))
        return false;
    placed->claim_bytes = job->claim_bytes;
    placed->recovery = job->recovery;
    for (uint32_t i = 0; i < placed->count; i++)
        placed->shared |= core->gpus[placed->gpus[i]].resident_count > 0;
    return decide(core, out, &decision);
}

void core_decide(struct core *core, int64_t now_ns, struct record_list *out)
{
    decide_undecided(core, now_ns, out);
    while (place_head(core, now_ns, out)) {
    }
}

static void earlier(int64_t *wake_ns, int64_t candidate_ns, int64_t now_ns)
{
    if (candidate_ns > now_ns && candidate_ns < *wake_ns)
        *wake_ns = candidate_ns;
}

int64_t core_next_wake_ns(const struct core *core, int64_t now_ns)
{
    int64_t wake_ns = INT64_MAX;

    for (const struct job *job = core->undecided.head; job; job = job->next)
        earlier(&wake_ns, job->signal_retry_ns, now_ns);
    if (!core_head(core))
        return wake_ns;
    earlier(&wake_ns, core->next_decision_ns, now_ns);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (core->gpus[i].settling_job)
            earlier(&wake_ns, core->gpus[i].closed_until_ns, now_ns);
    return wake_ns;
}
