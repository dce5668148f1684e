/* Readings, handed to their store over time. */
#include "core/ledger.h"
#include "daemon/node/node_internal.h"
#include "daemon/node/series.h"

static int64_t sm_activity_of(const struct node_gpu *entry)
{
    const struct gpu_measure *measure = &entry->reading.metrics[GPU_SM_ACTIVITY];

    return measure->source == GPU_SOURCE_NONE ? -1 : (int64_t)measure->value;
}

static void add_gpu(const struct node *node, const struct gpu *gpu, const struct node_gpu *entry, int64_t at_ns)
{
    int64_t values[SERIES_GPU_VALUES] = {
        [SERIES_USED_BYTES] = entry->reading.used_bytes,
        [SERIES_UNMANAGED_BYTES] = entry->attribution.unmanaged_bytes,
        [SERIES_SM_PERMILLE] = sm_activity_of(entry),
        [SERIES_POWER_MW] = entry->reading.valid & GPU_HAS_POWER ? (int64_t)entry->reading.power_mw : -1,
    };

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i]->reserved_bytes > 0)
            values[SERIES_RESERVED_BYTES] += gpu->residents[i]->reserved_bytes;
    series_add_gpu(node->daemon->series, gpu->number, at_ns, values);
}

/* Of all its GPUs; the sum of all users' memory is that of the GPU where it used most. */
static void add_job(const struct node *node, const struct job *job, int64_t at_ns)
{
    int64_t values[SERIES_JOB_VALUES] = {-1, -1, -1, -1};
    int64_t sm_permille = 0, measured = 0;

    values[SERIES_JOB_RESERVED_BYTES] = job->reserved_bytes;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct node_gpu *entry = node_gpu_numbered(node, job->placements[i].gpu);
        int64_t held;

        if (!entry || !entry->there)
            continue;
        held = attribution_of(&entry->attribution, job->id);
        if (values[SERIES_JOB_GPU_USED_BYTES] < 0 || held > values[SERIES_JOB_USED_BYTES]) {
            values[SERIES_JOB_USED_BYTES] = held;
            values[SERIES_JOB_GPU_USED_BYTES] = entry->reading.used_bytes;
        }
        if (sm_activity_of(entry) >= 0) {
            sm_permille += sm_activity_of(entry);
            measured++;
        }
    }
    if (measured)
        values[SERIES_JOB_SM_PERMILLE] = sm_permille / measured;
    series_add_job(node->daemon->series, job->id, at_ns, values);
}

void node_series_add(const struct node *node, int64_t at_ns)
{
    const struct core *core = node->daemon->core;

    for (uint32_t g = 0; g < core_gpu_count(core); g++) {
        const struct gpu *gpu = core_gpu(core, g);
        const struct node_gpu *entry = node_gpu_numbered(node, g);

        if (entry && entry->there)
            add_gpu(node, gpu, entry, at_ns);
        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            const struct job *job = gpu->residents[i];
            if (job->placements[0].gpu == g && job_state_runs(job->state)) /* once */
                add_job(node, job, at_ns);
        }
    }
}
