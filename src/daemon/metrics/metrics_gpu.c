/* Figures of GPUs and of the jobs on them. Values without a recent reading are left out: an old value would pass for a
 * new one. In MIG mode memory and activity are told of the instances, and power, energy and Xids of their GPU. So a sum
 * over all counts nothing twice. */
#include "core/ledger.h"
#include "daemon/metrics/metrics_internal.h"
#include "daemon/view/view.h"

static bool has(const struct metric_subject *gpu, uint32_t bit)
{
    return gpu->entry->there && gpu->entry->reading.valid & bit;
}

static bool is_physical(const struct metric_subject *gpu)
{
    return gpu->entry->reading.kind != GPU_INSTANCE;
}

static bool tell(int64_t *value, int64_t known, bool is_known)
{
    *value = known;
    return is_known;
}

/* ---- GPUs ---- */

METRIC(metric_gpu_lost, gpu, true,
       gpu->gpu ? gpu->gpu->lost : !gpu->entry->there || gpu->entry->reading.kind != GPU_PARTITIONED)
METRIC(metric_gpu_drained, gpu, gpu->gpu, gpu->gpu->drained || gpu->gpu->node_drained)
bool metric_gpu_unknown(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    *value = 0;
    for (uint32_t i = 0; i < GPU_REFUSED_COUNT; i++)
        *value += gpu->entry->refused[i] != 0;
    return gpu->entry->there;
}

METRIC(metric_gpu_jobs, gpu, gpu->gpu, gpu->gpu->resident_count)
METRIC(metric_gpu_total, gpu, gpu->gpu && gpu->gpu->total_bytes > 0, gpu->gpu->total_bytes)
METRIC(metric_gpu_used, gpu, has(gpu, GPU_HAS_MEMORY) && gpu->gpu, gpu->entry->reading.used_bytes)
METRIC(metric_gpu_reserved, gpu, gpu->gpu, gpu_reserved_bytes(gpu->gpu))
METRIC(metric_gpu_unmanaged, gpu, has(gpu, GPU_HAS_MEMORY) && gpu->gpu && gpu->entry->attribution.unmanaged_bytes >= 0,
       gpu->entry->attribution.unmanaged_bytes)
METRIC(metric_gpu_free, gpu, has(gpu, GPU_HAS_MEMORY) && gpu->gpu && !gpu->gpu->lost,
       node_free_bytes(scene->daemon->node, gpu->gpu, gpu->entry))

bool metric_gpu_measure(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    const struct gpu_measure *measure = &gpu->entry->reading.metrics[gpu->number];

    return tell(value, measure->value, gpu->gpu && gpu->entry->there && measure->source != GPU_SOURCE_NONE);
}

METRIC(metric_gpu_active_time, gpu, gpu->gpu && gpu->entry->at_ns, (int64_t)(gpu->entry->sm_activity_seconds * 1e9))
METRIC(metric_gpu_read_time, gpu, gpu->entry->at_ns, gpu->entry->at_ns)
METRIC(metric_gpu_power, gpu, has(gpu, GPU_HAS_POWER), gpu->entry->reading.power_mw)
METRIC(metric_gpu_energy, gpu, has(gpu, GPU_HAS_ENERGY), gpu->entry->reading.energy_mj)

bool metric_gpu_fact(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    const struct gpu_fact *fact = &gpu->entry->reading.facts[gpu->number];

    return tell(value, fact->value, gpu->entry->there && gpu->entry->at_ns && is_physical(gpu) && !fact->code);
}

bool metric_gpu_clock(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    bool is_known = metric_gpu_fact(scene, gpu, value);

    *value *= 1000000; /* MHz */
    return is_known;
}

METRIC(metric_gpu_throttled, gpu,
       gpu->entry->there && gpu->entry->at_ns && is_physical(gpu) && !gpu->entry->reading.facts[GPU_THROTTLE].code,
       (gpu->entry->reading.facts[GPU_THROTTLE].value & GPU_THROTTLE_TROUBLE) != 0)

bool metric_gpu_idle_power(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    const struct energy_meter *meter = node_energy_of(scene->daemon->node, gpu->entry->uuid);

    return tell(value, meter ? meter->idle_mw : 0, meter && meter->idle_mw >= 0);
}

static bool tell_account(const struct metrics_scene *scene, const struct metric_subject *gpu, uint64_t party,
                         int64_t *value)
{
    const struct energy_meter *meter = node_energy_of(scene->daemon->node, gpu->entry->uuid);

    *value = 0;
    for (size_t i = 0; meter && i < meter->count; i++)
        if (meter->accounts[i].party == party && meter->accounts[i].stored_mj > 0)
            *value = meter->accounts[i].stored_mj;
    return meter;
}

bool metric_gpu_idle_energy(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    return tell_account(scene, gpu, ENERGY_IDLE, value);
}

bool metric_gpu_unmanaged_energy(const struct metrics_scene *scene, const struct metric_subject *gpu, int64_t *value)
{
    return tell_account(scene, gpu, ENERGY_UNMANAGED, value);
}

METRIC(metric_gpu_xid, gpu, is_physical(gpu), gpu->entry->reading.xid)
METRIC(metric_gpu_xids, gpu, is_physical(gpu), gpu->entry->reading.xid_count)

/* ---- Jobs ---- */

bool metric_job_reserved(const struct metrics_scene *scene, const struct metric_subject *share, int64_t *value)
{
    const struct job *job = core_find_job(scene->daemon->core, share->view->id);

    return tell(value, job ? job->reserved_bytes : -1, job && job->reserved_bytes >= 0);
}

bool metric_job_used(const struct metrics_scene *scene, const struct metric_subject *share, int64_t *value)
{
    *value = share->entry->there ? attribution_of(&share->entry->attribution, share->view->id) : -1;
    return *value >= 0;
}

bool metric_job_peak(const struct metrics_scene *scene, const struct metric_subject *share, int64_t *value)
{
    const struct job_view *view = share->view;

    *value = 0;
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (view->placements[i].gpu == share->gpu->number)
            *value = view->placements[i].observed_bytes;
    return true;
}

METRIC(metric_stray, stray, true, stray->process->used_bytes > 0 ? stray->process->used_bytes : 0)
METRIC(metric_job_over, job, true, job_view_over_bytes(job->view, scene->daemon->core))
METRIC(metric_job_victims, job, true, job->view->run->victims)

bool metric_job_slowdown(const struct metrics_scene *scene, const struct metric_subject *job, int64_t *value)
{
    *value = job_view_slowdown_permille(job->view, scene->daemon->core);
    return *value > 0;
}

METRIC(metric_job_gpu_time, job, true, job_view_gpu_ns(job->view, scene->now_ns))

bool metric_job_energy(const struct metrics_scene *scene, const struct metric_subject *job, int64_t *value)
{
    *value = job->view->run->energy_mj;
    for (size_t i = 0; i < scene->unstored_count; i++)
        if (scene->unstored[i].party == job->view->id)
            *value -= scene->unstored[i].mj;
    return true;
}
