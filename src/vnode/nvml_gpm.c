/* GPM: activity between two samples. Every virtual device answers, a virtual A100 too (docs/vnode.md). */
#include <stdlib.h>

#include "vnode/nvml_node.h"

struct nvml_gpm_sample {
    struct nvml_device *device; /* NULL: nothing was sampled yet */
    int64_t at_ns;
    struct node_gpu_now now;
};

int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    if (rc != NVML_SUCCESS)
        return rc;
    if (!support)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->supported = 1;
    return NVML_SUCCESS;
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    free(sample);
    return NVML_SUCCESS;
}

int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    const struct node_gpu *gpu;
    struct node_bank *bank;
    int rc;

    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = nvml_begin(device, &gpu, &bank);
    if (rc != NVML_SUCCESS)
        return rc;
    *sample = (struct nvml_gpm_sample){.device = device, .at_ns = bank->updated_ns, .now = bank->gpus[device->index]};
    nvml_end();
    return NVML_SUCCESS;
}

int nvmlGpmMigSampleGet(struct nvml_device *device, unsigned int gpu_instance_id, struct nvml_gpm_sample *sample)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    return rc == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rc; /* no device is in MIG mode */
}

static int metric(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b, struct nvml_gpm_metric *m)
{
    double interval_ns = (double)(b->at_ns - a->at_ns);

    m->value = 0;
    m->info.unit = "%";
    switch (m->id) {
    case NVML_GPM_METRIC_GRAPHICS_UTIL:
        m->info.short_name = "Graphics Util";
        m->info.long_name = "Share of time in which the GPU was busy";
        m->value = 100 * (b->now.busy_ns - a->now.busy_ns) / interval_ns;
        return NVML_SUCCESS;
    case NVML_GPM_METRIC_SM_UTIL:
        m->info.short_name = "SM Util";
        m->info.long_name = "Share of the SMs that were busy";
        m->value = 100 * (b->now.sm_activity_ns - a->now.sm_activity_ns) / interval_ns;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *metrics)
{
    const struct nvml_gpm_sample *a, *b;

    if (!metrics)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (metrics->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    a = metrics->sample1;
    b = metrics->sample2;
    if (!a || !b || !a->device || a->device != b->device || a->at_ns >= b->at_ns ||
        metrics->count > NVML_GPM_METRICS_ROOM)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < metrics->count; i++)
        metrics->metrics[i].nvml_return = metric(a, b, &metrics->metrics[i]);
    return NVML_SUCCESS;
}
