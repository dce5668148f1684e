/* How this file works: gpu_verdict() asks one GPU for one job, from the cheapest question to the dearest: does it suit
 * the job (gpus/suits.h), is it open (gpus/closed.def, gpus/closing.c, gpus/allotment.c), is it idle and large enough
 * (gpu_fits_idle), is it kept for another job (fits_beside_reserved), may they share it (share/sharing.c), has it the
 * memory (need/need.c), and would anybody be slowed too much (prediction_verdict) or is it too busy as measured
 * (load_verdict). The first no is the reason that people are told (reason.c). These rules are all policies'; a policy
 * says which it waives, and ranks the GPUs that pass (policy/policy.h, place.c). gpu_beside_reserved() is a cache of
 * what the search for candidates asks (waiting/backfill.c): it may let a job through that gpu_verdict() then refuses,
 * and never keeps one that would pass. To add a rule: a reason (reasons.def), a question here, and where it can be
 * asked without the job, the same in space_of (waiting/backfill.c). */
#include "core/qualify.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"
#include "core/gpus/suits.h"
#include "core/guess/program_history.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/share/seen.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/state.h"

static bool is_beyond_bound(const struct slowdown *with, int32_t bound)
{
    return bound && with->worst_permille > slowdown_most_predicted(with, bound);
}

static uint32_t prediction_verdict(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    int32_t bound = gpu_slowdown_bound(core, job, gpu);
    struct slowdown with;

    if (core->config.gate == GATE_MEMORY)
        return REASON_NONE;
    with = slowdown_predict(core, gpu, job);
    if (is_beyond_bound(&with, bound))
        return with.measured ? REASON_PAIR : REASON_SLOWDOWN;
    /* GPUs are reserved for a job, whether it gains much there or not. */
    if (job->id == core->reserved_job || slowdown_pays(core, gpu, &with))
        return REASON_NONE;
    return with.measured ? REASON_PAIR : REASON_TURNS;
}

#define NEIGHBOURS_MAX 64

/* A GPU as it will be once the residents have gone that were there when it was reserved. */
struct later {
    struct gpu gpu;
    struct job *neighbours[NEIGHBOURS_MAX], reserved;
    int64_t left_bytes; /* beside the job that has it reserved; negative: nobody may come */
};

static void look_later(const struct core *core, const struct gpu *gpu, struct later *later)
{
    const struct job *head = core_job_by_id(core, gpu->reserved_for);
    int64_t reserved = need_memory(core, head, NULL);

    later->gpu = (struct gpu){.residents = later->neighbours,
                              .total_bytes = gpu->total_bytes,
                              .share = gpu->share,
                              .instance = gpu->instance,
                              .part_permille = gpu->part_permille,
                              .compute = gpu->compute};
    memcpy(later->gpu.name, gpu->name, sizeof later->gpu.name);
    later->gpu.number = gpu->number;
    later->left_bytes = gpu_idle_bytes(gpu) - core->config.margin_bytes - reserved;
    if (reserved < 0 || job_wants_idle(core, head) || !core->policy->predicts)
        later->left_bytes = -1;
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i]->placed_ns >= gpu->reserved_ns) {
            if (later->gpu.resident_count + 1 >= array_size(later->neighbours)) {
                later->left_bytes = -1;
                return;
            }
            later->neighbours[later->gpu.resident_count++] = gpu->residents[i];
            later->left_bytes -= gpu->residents[i]->reserved_bytes;
        }
}

/* The job that has it reserved has come, too. */
static void reserved_comes(const struct core *core, const struct gpu *gpu, struct later *later)
{
    later->reserved = *core_job_by_id(core, gpu->reserved_for);
    later->reserved.share = sharing_mode_of(core, &later->reserved, &later->gpu);
    later->neighbours[later->gpu.resident_count++] = &later->reserved;
}

/* A job that comes after a reservation must fit beside the job that holds it, once the earlier residents have gone. It
 * must fit in memory, slowdown and sharing mode. So the reserved job starts then at the latest, and the GPU is used
 * until then. */
static bool fits_beside_reserved(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    struct later later;
    int64_t reservation = need_memory(core, job, NULL);

    if (need_is_guessed(core, job))
        reservation = program_careful_bytes(job); /* the head must not wait for a wrong guess */
    if (reservation < 0 || job->wants->exclusive)
        return false;
    look_later(core, gpu, &later);
    if (reservation > later.left_bytes ||
        !sharing_lets_follow(core, job, core_job_by_id(core, gpu->reserved_for), &later.gpu))
        return false;
    reserved_comes(core, gpu, &later);
    return prediction_verdict(core, job, &later.gpu) == REASON_NONE;
}

const struct beside_reserved *gpu_beside_reserved(const struct core *core, const struct gpu *gpu)
{
    struct beside_reserved *known = &core->gpus[gpu->number]->beside_reserved;
    struct later later;

    if (known->applied == core->applied)
        return known;
    look_later(core, gpu, &later);
    *known = (struct beside_reserved){.applied = core->applied, .bytes = later.left_bytes, .bands = UINT64_MAX};
    if (later.left_bytes >= 0 && core_gates_slowdown(core)) {
        reserved_comes(core, gpu, &later);
        later.gpu.takers = slowdown_takers_new();
        known->bands = slowdown_bands(core, &later.gpu, NULL);
        free(later.gpu.takers);
    }
    return known;
}

static bool kept_for_another(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return gpu->reserved_for && gpu->reserved_for != job->id && !fits_beside_reserved(core, job, gpu);
}

/* An instance that would slow the job beyond its bound is for others, where the node has a larger one for it. A job
 * without a bound of its own and without a known activity takes any. */
static bool waits_for_larger(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    const struct gpu alone = {.share = gpu->share, .instance = gpu->instance, .part_permille = gpu->part_permille};
    bool larger = false;

    if (gpu->part_permille == 1000 || !core->policy->predicts ||
        !(job->wants->max_slowdown_permille || learned_activity_is_known(job)) ||
        prediction_verdict(core, job, &alone) == REASON_NONE)
        return false;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        larger |= gpu_could_take(job, core->gpus[i]) && core->gpus[i]->part_permille > gpu->part_permille &&
                  !allotment_against(core, job, core->gpus[i]);
    return larger;
}

static bool is_closed_to(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return closing_is_closed_to(core, job, gpu) || allotment_against(core, job, gpu);
}

bool gpu_is_for(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return gpu_could_take(job, gpu) && !is_closed_to(core, job, gpu) && !waits_for_larger(core, job, gpu);
}

/* What unmanaged processes hold may stay as well, and be his. */
bool gpu_will_be_for(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    struct job *own[NEIGHBOURS_MAX];
    struct gpu later = *gpu;
    struct slowdown with;
    uint32_t source;

    later.residents = own;
    later.resident_count = 0;
    later.exclusive_job = NULL;
    later.takers = NULL;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        if (gpu->residents[i]->user != job->user)
            continue;
        if (gpu->residents[i] == gpu_exclusive_resident(gpu) || later.resident_count == array_size(own))
            return false;
        own[later.resident_count++] = gpu->residents[i];
    }
    if (later.resident_count == 0 && gpu->unmanaged_bytes <= GPU_IDLE_UNMANAGED_BYTES)
        return job_idle_bytes(core, job, &source) <= gpu_idle_bytes(gpu);
    gpu_rebook(&later);
    if (job_wants_idle(core, job) || later.resident_count >= core->config.max_jobs_per_gpu ||
        gpu_free_bytes(core, &later) < job_needed_bytes_on(core, job, &later) ||
        sharing_verdict(core, job, &later) != REASON_NONE)
        return false;
    if (!core->policy->predicts || !core_gates_slowdown(core))
        return true;
    with = slowdown_predict(core, &later, job);
    return !seen_beyond_bound(core, &later) && !is_beyond_bound(&with, gpu_slowdown_bound(core, job, &later));
}

bool gpu_fits_idle(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    uint32_t source;

    return gpu_idle(gpu) && !is_closed_to(core, job, gpu) && sharing_verdict(core, job, gpu) == REASON_NONE &&
           !kept_for_another(core, job, gpu) && !waits_for_larger(core, job, gpu) &&
           job_idle_bytes(core, job, &source) <= gpu_idle_bytes(gpu);
}

static bool over(int32_t reading_permille, int32_t cap_permille)
{
    return cap_permille < 1000 && reading_permille > cap_permille;
}

/* The measured activity closes the GPU (thesis 6.2.2; several caps: its public code). */
static uint32_t load_verdict(const struct core *core, const struct gpu *gpu)
{
    const struct core_config *config = &core->config;
    bool busy = over(gpu->smact_permille, config->smact_cap_permille);
    bool others =
        over(gpu->smocc_permille, config->smocc_cap_permille) || over(gpu->dram_permille, config->dram_cap_permille);
    /* Where neither of the others is measured, SM activity has to decide by itself. */
    bool alone = gpu->smocc_permille < 0 && gpu->dram_permille < 0;

    if (config->smact_cap_permille < 1000 && gpu->smact_permille < 0)
        return REASON_NOT_MEASURED;
    if (config->caps_together)
        return busy && (others || alone) ? REASON_SM_ACTIVITY : REASON_NONE;
    return busy || others ? REASON_SM_ACTIVITY : REASON_NONE;
}

uint32_t gpu_verdict(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t now_ns)
{
    uint32_t closed = gpu_closed_reason(gpu), sharing;

    if (!gpu_suits(job->wants, gpu))
        return REASON_UNSUITED;
    if (closed != REASON_NONE)
        return closed;
    if (!gpu->measured)
        return REASON_NOT_MEASURED;
    if (closing_is_closed_to(core, job, gpu))
        return REASON_CLOSED;
    if (allotment_against(core, job, gpu))
        return REASON_ALLOTTED;
    if (gpu_fits_idle(core, job, gpu))
        return REASON_NONE;
    if (kept_for_another(core, job, gpu))
        return REASON_RESERVED;
    if (gpu_exclusive_resident(gpu))
        return REASON_EXCLUSIVE;
    if ((sharing = sharing_verdict(core, job, gpu)) != REASON_NONE)
        return sharing;
    if (job->oom_crashes > 1 && sharing_mode_of(core, job, gpu) != SHARE_MPS && job_may_be_fenced(core, job))
        return REASON_OTHER_MODE; /* beside others it goes only where it cannot take their memory */
    if (gpu->resident_count >= core->config.max_jobs_per_gpu)
        return REASON_FULL;
    if (gpu_settling(core, gpu, now_ns))
        return REASON_SETTLING;
    if (gpu_free_bytes(core, gpu) < job_needed_bytes_on(core, job, gpu))
        return REASON_MEMORY;
    if (core->policy->waives_load || core->config.gate == GATE_MEMORY)
        return REASON_NONE;
    if (core->policy->predicts && seen_beyond_bound(core, gpu))
        return REASON_SLOWED;
    return core->policy->predicts ? prediction_verdict(core, job, gpu) : load_verdict(core, gpu);
}
