/* How this file works: core_place places one job where it fits, by what it takes (need.h). A job that was found to fit
 * nowhere is looked at again only where a GPU has opened since (worth_another_look). Which GPU qualifies at all is said
 * in qualify.c; the policy ranks those that do; core_place adds figures, fence and sharing mode to the record.
 *
 * backfill.c calls it for the head and those behind it, in their order. */
#include "core/place.h"

#include "core/apply.h"
#include "core/learn/pairs.h"
#include "core/need/fence.h"
#include "core/need/need.h"
#include "core/qualify.h"
#include "core/share/rates.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"

/* Enters it before those of higher ranks, where it is one of the best `most`. Those of equal rank stand by index. */
static void enter(struct record_placed *placed, int64_t *ranks, uint32_t most, uint32_t gpu, int64_t rank)
{
    uint32_t at;

    if (placed->count < most)
        placed->count++;
    for (at = placed->count - 1; at > 0 && rank < ranks[at - 1]; at--) {
        ranks[at] = ranks[at - 1];
        placed->gpus[at] = placed->gpus[at - 1];
    }
    ranks[at] = rank;
    placed->gpus[at] = gpu;
}

/* Whether one of that rank would be among the best `most`. */
static bool is_better(const struct record_placed *placed, const int64_t *ranks, uint32_t most, int64_t rank)
{
    return placed->count < most || rank < ranks[most - 1];
}

/* The first `wanted` GPUs that are idle, in index order: whole ones first where the policy predicts what a smaller
 * instance would cost the job, then the larger instances. False when there are fewer. */
static bool choose_idle(const struct core *core, const struct job *job, struct record_placed *placed)
{
    int64_t ranks[RECORD_MAX_GPUS];

    placed->count = 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        int64_t rank = core->policy->predicts ? -core->gpus[i]->part_permille : 0;
        if (is_better(placed, ranks, job->wants->gpus, rank) && gpu_fits_idle(core, job, core->gpus[i]))
            enter(placed, ranks, job->wants->gpus, i, rank);
    }
    return placed->count == job->wants->gpus;
}

/* The residents of the GPU may leave too little memory, or too little of the SMs. The full verdict would refuse the
 * GPU, too, but costs more. */
static bool may_qualify(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t needed_bytes)
{
    return gpu->resident_count == 0 ||
           (gpu_free_bytes(core, gpu) >= needed_bytes &&
            (!core_gates_slowdown(core) || job->id == core->reserved_job ||
             slowdown_bands(core, gpu, job->user) >> slowdown_band(pairs_activity(job)) & 1));
}

/* The best `wanted` of the GPUs that qualify, best first: all must qualify at once. */
static bool choose_shared(const struct core *core, const struct job *job, int64_t now_ns, struct record_placed *placed)
{
    int64_t ranks[RECORD_MAX_GPUS], needed_bytes = job_needed_bytes(core, job);

    placed->count = 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        int64_t rank;
        if (!may_qualify(core, job, core->gpus[i], needed_bytes))
            continue;
        rank = core->policy->rank(core, job, core->gpus[i]); /* costs less than the verdict */
        if (is_better(placed, ranks, job->wants->gpus, rank) &&
            gpu_verdict(core, job, core->gpus[i], now_ns) == REASON_NONE)
            enter(placed, ranks, job->wants->gpus, i, rank);
    }
    return placed->count == job->wants->gpus;
}

static bool choose_gpus(const struct core *core, const struct job *job, int64_t now_ns, struct record_placed *placed)
{
    bool idle_only = job_wants_idle(core, job);

    if ((idle_only || core->policy->idle_first) && choose_idle(core, job, placed))
        return true;
    return !idle_only && choose_shared(core, job, now_ns, placed);
}

static uint64_t last_look(const struct autocluster *autocluster)
{
    return autocluster->examined && autocluster->line->searched > autocluster->examined ? autocluster->line->searched
                                                                                        : autocluster->examined;
}

/* Whether anything has changed for the better since the job was last found not to fit: without that, looking again is
 * in vain. This keeps decisions cheap with a long queue and many GPUs. */
static bool worth_another_look(const struct core *core, const struct job *job, int64_t now_ns)
{
    uint64_t since = last_look(job->autocluster);
    int64_t needed_bytes;

    if (since == 0)
        return true;
    needed_bytes = job_needed_bytes(core, job);
    for (const struct gpu *gpu = core->last_opened; gpu && gpu->opened > since; gpu = gpu->opened_before)
        if (may_qualify(core, job, gpu, needed_bytes) && gpu_verdict(core, job, gpu, now_ns) == REASON_NONE)
            return true;
    return false;
}

static int32_t predicted_slowdown(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    int32_t worst = 1000;

    for (uint32_t i = 0; i < placed->count; i++) {
        int32_t slowdown = slowdown_predict(core, core->gpus[placed->gpus[i]], job).worst_permille;
        if (slowdown > worst)
            worst = slowdown;
    }
    return worst;
}

/* The least of its GPUs'. */
static uint32_t threads_percent(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    uint32_t least = RATES_ALL_THREADS;

    for (uint32_t i = 0; i < placed->count && placed->share == SHARE_MPS; i++) {
        uint32_t there = slowdown_threads(core, core->gpus[placed->gpus[i]], job);
        least = there < least ? there : least;
    }
    return least < RATES_ALL_THREADS ? least : 0;
}

/* It takes nothing from anybody: eligible.c has the bounds. */
static bool place_without_gpu(struct core *core, const struct job *job, int64_t now_ns, struct record_list *out)
{
    struct record decision = {.type = RECORD_PLACED, .at_ns = now_ns, .job = job->id};

    decision.placed = (struct record_placed){.reserved_bytes = -1,
                                             .reservation_source = SOURCE_UNKNOWN,
                                             .slowdown_permille = 1000,
                                             .fence_bytes = -1,
                                             .share = SHARE_TIME_SLICE,
                                             .retry = job->retry};
    return core_decided(core, out, &decision);
}

bool core_place(struct core *core, struct job *job, int64_t now_ns, struct record_list *out)
{
    struct record decision = {.type = RECORD_PLACED, .at_ns = now_ns, .job = job->id};
    struct record_placed *placed = &decision.placed;
    struct reason why;

    if (!core_could_ever_run(core, job->wants, &why)) {
        decision.type = RECORD_REFUSED;
        return core_decided(core, out, &decision);
    }
    if (job->wants->gpus == 0)
        return place_without_gpu(core, job, now_ns, out);
    if (!worth_another_look(core, job, now_ns))
        return false;
    if (!choose_gpus(core, job, now_ns, placed)) {
        autocluster_set_examined(core, job->autocluster, core->openings);
        return false;
    }
    placed->reserved_bytes = need_memory(core, job, &placed->reservation_source);
    placed->share = sharing_together(core, job, placed->gpus, placed->count);
    placed->threads_percent = threads_percent(core, job, placed);
    placed->retry = job->retry;
    placed->slowdown_permille = predicted_slowdown(core, job, placed);
    for (uint32_t i = 0; i < placed->count; i++) {
        const struct gpu *gpu = core->gpus[placed->gpus[i]];
        placed->shared |= gpu->resident_count > 0;
        if (placed->reserved_bytes > gpu_idle_bytes(gpu)) /* a learned margin beyond the card */
            placed->reserved_bytes = gpu_idle_bytes(gpu);
    }
    placed->fence_bytes = fence_for(core, job, placed);
    return core_decided(core, out, &decision);
}

bool core_decision_due(const struct core *core, int64_t now_ns)
{
    /* Further off than any decision puts the next one: the clock was set back since. */
    int64_t off_ns = core->next_decision_ns - now_ns;

    return off_ns <= 0 || off_ns > core->config.decide_period_ns + core->config.collocate_extra_ns;
}
