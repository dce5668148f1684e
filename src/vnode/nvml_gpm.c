/* GPM: activity between two samples, of a GPU or of a MIG instance. A node has SM activity; the rest follows it by the
 * shares below, which are modelled, not measured (docs/vnode.md). */
#include <math.h>
#include <stdlib.h>

#include "vnode/nvml_node.h"

#define OCCUPANCY_SHARE 0.5 /* of the SM activity, as the three below */
#define TENSOR_SHARE    0.4
#define DRAM_SHARE      0.6
#define PCIE_TX_MIB     60.0  /* a second, at SM activity 1 */
#define PCIE_RX_MIB     600.0 /* training data */
#define OVER_RANGE      173.0 /* NODE_FAULT_OVER_RANGE: no percentage */

struct nvml_gpm_sample {
    struct nvml_device *device; /* NULL: nothing was sampled yet */
    int64_t at_ns;
    double sm_activity_ns; /* integrals over node time */
    double busy_ns;
};

int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_gpu(device, &gpu), support));
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->supported = gpu->gpm;
    return NVML_SUCCESS;
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
    NVML_ASK(nvml_checked(nvml_ready(), sample));
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    free(sample);
    return NVML_SUCCESS;
}

static int sample_place(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    const struct node_gpu *gpu;
    struct node_bank *bank;

    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    NVML_ASK(nvml_begin(device, &gpu, &bank));
    *sample = (struct nvml_gpm_sample){.device = device, .at_ns = bank->updated_ns};
    if (device->instance == 0) {
        sample->sm_activity_ns = bank->gpus[device->gpu].sm_activity_ns;
        sample->busy_ns = bank->gpus[device->gpu].busy_ns;
    } else {
        sample->sm_activity_ns = bank->gpus[device->gpu].instances[device->instance - 1].sm_activity_ns;
        sample->busy_ns = bank->gpus[device->gpu].instances[device->instance - 1].busy_ns;
    }
    nvml_end();
    if (!gpu->gpm)
        return NVML_ERROR_NOT_SUPPORTED;
    return nvml_fault(device, NODE_FAULT_NO_PERMISSION) ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    const struct node_gpu *gpu;
    int rc = nvml_whole_gpu(device, &gpu); /* instances are asked for by nvmlGpmMigSampleGet */

    return rc == NVML_SUCCESS ? sample_place(device, sample) : rc;
}

int nvmlGpmMigSampleGet(struct nvml_device *device, unsigned int gpu_instance_id, struct nvml_gpm_sample *sample)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_whole_gpu(device, &gpu));
    for (uint32_t i = 0; i < gpu->instance_count; i++)
        if (gpu->instances[i].gpu_instance == gpu_instance_id)
            return sample_place(nvml_handle(device->gpu, 1 + i), sample);
    return gpu->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
}

static double faulty(const struct nvml_device *device, double value)
{
    if (nvml_fault(device, NODE_FAULT_BLANK))
        return NAN;
    if (nvml_fault(device, NODE_FAULT_OVER_RANGE))
        return OVER_RANGE;
    return nvml_fault(device, NODE_FAULT_STUCK_ZERO) ? 0 : value;
}

/* Each metric's share of the mean SM activity `sm` and busy share `busy` (0..1). */
static int metric(double sm, double busy, struct nvml_gpm_metric *m)
{
    static const struct {
        unsigned int id;
        const char *short_name, *long_name, *unit;
        double of_sm, of_busy;
    } metrics[] = {
        {NVML_GPM_METRIC_GRAPHICS_UTIL, "Graphics Util", "Share of time in which the GPU was busy", "%", 0, 100},
        {NVML_GPM_METRIC_SM_UTIL, "SM Util", "Share of the SMs that were busy", "%", 100, 0},
        {NVML_GPM_METRIC_SM_OCCUPANCY, "SM Occupancy", "Warps on the SMs, of the most there can be", "%",
         100 * OCCUPANCY_SHARE, 0},
        {NVML_GPM_METRIC_ANY_TENSOR_UTIL, "Any Tensor Util", "Share of cycles with a tensor pipe busy", "%",
         100 * TENSOR_SHARE, 0},
        {NVML_GPM_METRIC_DRAM_BW_UTIL, "DRAM BW Util", "Share of the memory bandwidth that was used", "%",
         100 * DRAM_SHARE, 0},
        {NVML_GPM_METRIC_PCIE_TX_PER_SEC, "PCIe TX", "Sent over PCIe", "MiB/s", PCIE_TX_MIB, 0},
        {NVML_GPM_METRIC_PCIE_RX_PER_SEC, "PCIe RX", "Received over PCIe", "MiB/s", PCIE_RX_MIB, 0},
    };

    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (m->id == metrics[i].id) {
            m->info.short_name = metrics[i].short_name;
            m->info.long_name = metrics[i].long_name;
            m->info.unit = metrics[i].unit;
            m->value = metrics[i].of_sm * sm + metrics[i].of_busy * busy;
            return NVML_SUCCESS;
        }
    m->value = 0;
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *metrics)
{
    const struct nvml_gpm_sample *a, *b;
    const struct node_gpu *gpu;
    double interval_ns;
    int rc = nvml_checked(nvml_ready(), metrics);

    if (rc != NVML_SUCCESS)
        return rc;
    if (metrics->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    a = metrics->sample1;
    b = metrics->sample2;
    if (!a || !b || !a->device || a->device != b->device || a->at_ns >= b->at_ns ||
        metrics->count > NVML_GPM_METRICS_ROOM)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = nvml_gpu(a->device, &gpu);
    if (rc != NVML_SUCCESS)
        return rc;
    interval_ns = (double)(b->at_ns - a->at_ns);
    for (unsigned int i = 0; i < metrics->count; i++) {
        struct nvml_gpm_metric *m = &metrics->metrics[i];

        m->nvml_return =
            metric((b->sm_activity_ns - a->sm_activity_ns) / interval_ns, (b->busy_ns - a->busy_ns) / interval_ns, m);
        if (m->nvml_return == NVML_SUCCESS)
            m->value = faulty(a->device, m->value);
    }
    return NVML_SUCCESS;
}
