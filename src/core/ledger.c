/* How this file works: what is free on a GPU follows from its last sample and its residents' reservations, which
 * gpu_rebook adds up anew when one comes, goes or changes. gpu_opens puts a GPU first in the list of those that may
 * take more than before: place.c and waiting/backfill.c look at no others again. */
#include "core/ledger.h"

#include "base/memory.h"
#include "core/reason.h"
#include "core/state.h"

static struct job_placement *find_gpu(struct job_placement *list, uint32_t count, uint32_t gpu)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].gpu == gpu)
            return &list[i];
    return NULL;
}

struct job_placement *job_placement_on(const struct job *job, uint32_t gpu)
{
    return find_gpu(job->placements, job->placement_count, gpu);
}

int64_t job_stray_bytes_on(const struct job *job, uint32_t gpu)
{
    const struct job_placement *stray = find_gpu(job->run->strays, job->run->stray_count, gpu);

    return stray ? stray->observed_bytes : 0;
}

int64_t job_strays(struct job *job, uint32_t gpu, int64_t bytes)
{
    struct job_run *run = job_run(job);
    struct job_placement *stray = find_gpu(run->strays, run->stray_count, gpu);
    int64_t sum = 0;

    if (!stray) {
        run->strays = xrealloc(run->strays, run->stray_count + 1, sizeof *run->strays);
        stray = &run->strays[run->stray_count++];
        *stray = (struct job_placement){.gpu = gpu};
    }
    if (bytes > stray->observed_bytes)
        stray->observed_bytes = bytes;
    for (uint32_t i = 0; i < run->stray_count; i++)
        sum += run->strays[i].observed_bytes;
    return sum;
}

int64_t job_peak_bytes(const struct job *job)
{
    int64_t peak = 0;

    for (uint32_t i = 0; i < job->placement_count; i++)
        if (job->placements[i].observed_bytes > peak)
            peak = job->placements[i].observed_bytes;
    return peak;
}

static int64_t at_least_zero(int64_t value)
{
    return value > 0 ? value : 0;
}

/* Every waiting job asks for the reservations of every GPU: their sum is updated when they change instead. */
void gpu_rebook(struct gpu *gpu)
{
    gpu->reserved_bytes = 0;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        int64_t observed = job_placement_on(job, gpu->number)->observed_bytes;
        if (job->reserved_bytes < 0) {
            gpu->reserved_bytes = -1;
            return;
        }
        gpu->reserved_bytes += job->reserved_bytes > observed ? job->reserved_bytes : observed;
    }
}

int64_t gpu_reserved_bytes(const struct gpu *gpu)
{
    return gpu->reserved_bytes < 0 ? gpu->total_bytes : gpu->reserved_bytes;
}

int64_t gpu_idle_bytes(const struct gpu *gpu)
{
    return at_least_zero(gpu->total_bytes - at_least_zero(gpu->unmanaged_bytes));
}

int64_t gpu_free_bytes(const struct core *core, const struct gpu *gpu)
{
    int64_t reserved;

    if (core->config.memory_view == MEMORY_MONITOR)
        return at_least_zero(gpu->total_bytes - gpu->used_bytes);
    reserved = gpu_reserved_bytes(gpu);
    if (gpu->unmanaged_bytes >= 0)
        reserved += gpu->unmanaged_bytes;
    else if (gpu->used_bytes > reserved)
        reserved = gpu->used_bytes;
    return at_least_zero(gpu->total_bytes - reserved - core->config.margin_bytes);
}

uint32_t gpu_closed_reason(const struct gpu *gpu)
{
#define CLOSED(member, reason)                                                                                         \
    if (gpu->member)                                                                                                   \
        return reason;
#include "core/gpus/closed.def"
    return REASON_NONE;
}

const struct core_resources *core_resources_held(const struct core *core)
{
    return &core->taken;
}

void resources_taken(struct core *core, const struct record_submitted *wants)
{
#define RESOURCE(member, name, code) core->taken.member += wants->member;
#include "core/resources.def"
    core->without_gpu += wants->gpus == 0;
}

void resources_left(struct core *core, const struct record_submitted *wants)
{
#define RESOURCE(member, name, code) core->taken.member -= wants->member;
#include "core/resources.def"
    core->without_gpu -= wants->gpus == 0;
}

const struct record_drain *gpu_drain(const struct core *core, const struct gpu *gpu)
{
    return gpu ? &gpu->drain : &core->drain;
}

bool gpu_is_open(const struct gpu *gpu)
{
    return gpu_closed_reason(gpu) == REASON_NONE;
}

bool gpu_idle(const struct gpu *gpu)
{
    int64_t unmanaged = gpu->unmanaged_bytes >= 0 ? gpu->unmanaged_bytes : gpu->used_bytes;

    return gpu_is_open(gpu) && gpu->measured && gpu->resident_count == 0 && unmanaged <= GPU_IDLE_UNMANAGED_BYTES;
}

bool gpu_is_of_residents(const struct gpu *gpu)
{
    return !gpu->others && gpu->unmanaged_bytes <= GPU_IDLE_UNMANAGED_BYTES;
}

const struct job *gpu_exclusive_resident(const struct gpu *gpu)
{
    if (gpu->share == SHARE_EXCLUSIVE && gpu->resident_count)
        return gpu->residents[0];
    return gpu->exclusive_job;
}

static bool holds_alone(const struct job *job)
{
    return job->wants->exclusive || job->share == SHARE_EXCLUSIVE;
}

bool gpu_settling(const struct core *core, const struct gpu *gpu, int64_t now_ns)
{
    int64_t left_ns = gpu->closed_until_ns - now_ns;

    return gpu->settling_job != 0 && left_ns > 0 && left_ns <= GPU_SETTLE_LIMIT * core->config.settle_ns;
}

void gpu_opens(struct core *core, struct gpu *gpu)
{
    gpu->opened = ++core->openings;
    if (core->last_opened == gpu)
        return;
    if (gpu->opened_before)
        gpu->opened_before->opened_after = gpu->opened_after;
    if (gpu->opened_after)
        gpu->opened_after->opened_before = gpu->opened_before;
    gpu->opened_after = NULL;
    gpu->opened_before = core->last_opened;
    if (core->last_opened)
        core->last_opened->opened_after = gpu;
    core->last_opened = gpu;
}

void gpus_open(struct core *core)
{
    for (uint32_t i = 0; i < core->gpu_count; i++)
        gpu_opens(core, core->gpus[i]);
}

void gpu_set_settling(struct core *core, struct gpu *gpu, uint64_t job)
{
    core->settling_count += (job != 0) - (gpu->settling_job != 0);
    gpu->settling_job = job;
}

void gpu_add_resident(struct gpu *gpu, struct job *job, int64_t at_ns)
{
    gpu->changed_ns = at_ns;
    array_reserve(gpu->residents, gpu->resident_capacity, gpu->resident_count + 1);
    gpu->residents[gpu->resident_count++] = job;
    gpu->residents_version++;
    if (holds_alone(job) && !gpu->exclusive_job)
        gpu->exclusive_job = job;
    gpu_rebook(gpu);
}

void gpu_remove_resident(struct core *core, struct gpu *gpu, struct job *job, int64_t at_ns)
{
    uint32_t kept = 0;
    int64_t observed = job_placement_on(job, gpu->number)->observed_bytes;

    gpu->exclusive_job = NULL;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        if (gpu->residents[i] == job)
            continue;
        if (holds_alone(gpu->residents[i]) && !gpu->exclusive_job)
            gpu->exclusive_job = gpu->residents[i];
        gpu->residents[kept++] = gpu->residents[i];
    }
    gpu->resident_count = kept;
    gpu->residents_version++;
    gpu_rebook(gpu);
    gpu->changed_ns = at_ns;
    gpu_opens(core, gpu);
    if (gpu->settling_job == job->id)
        gpu_set_settling(core, gpu, 0);
    /* Its tree has ended, so its memory is free; the next sample will say so, too. */
    if (gpu->resident_count == 0)
        gpu->used_bytes = at_least_zero(gpu->unmanaged_bytes);
    else
        gpu->used_bytes = at_least_zero(gpu->used_bytes - observed);
}
