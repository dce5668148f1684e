#include "gpu/nvml/gpm.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

#define INTERVAL_NS   (100 * NS_PER_MS) /* the least that NVML asks for between two samples */
#define ROUNDING      1.0               /* percent above 100 that are still taken for 100 */
#define TRAFFIC_LIMIT 1e6               /* MiB/s: no PCIe link carries a terabyte a second */

/* The request: NVML's number, our metric, its maximum, and our value of one NVML unit. */
static const struct {
    unsigned int id;
    enum gpu_metric metric;
    double limit;
    double scale;
} wanted[] = {
    {NVML_GPM_METRIC_SM_UTIL, GPU_SM_ACTIVITY, 100, 10},
    {NVML_GPM_METRIC_SM_OCCUPANCY, GPU_SM_OCCUPANCY, 100, 10},
    {NVML_GPM_METRIC_DRAM_BW_UTIL, GPU_DRAM_ACTIVITY, 100, 10},
    {NVML_GPM_METRIC_ANY_TENSOR_UTIL, GPU_TENSOR_ACTIVITY, 100, 10},
    {NVML_GPM_METRIC_PCIE_TX_PER_SEC, GPU_PCIE_TX, TRAFFIC_LIMIT, MIB},
    {NVML_GPM_METRIC_PCIE_RX_PER_SEC, GPU_PCIE_RX, TRAFFIC_LIMIT, MIB},
    {NVML_GPM_METRIC_GRAPHICS_UTIL, GPU_GRAPHICS_ACTIVITY, 100, 10},
};

/* Makes the samples where GPM is supported. */
static int prepare(const struct nvml_calls *calls, struct nvml_gpm *gpm, struct nvml_device *device)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};
    int rc;

    if (!calls->gpm_support || !calls->gpm_alloc || !calls->gpm_free || !calls->gpm_metrics)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    rc = calls->gpm_support(device, &support);
    if (rc != NVML_SUCCESS || !support.supported)
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_NOT_SUPPORTED;
    rc = calls->gpm_alloc(&gpm->earlier);
    if (rc == NVML_SUCCESS && (rc = calls->gpm_alloc(&gpm->later)) != NVML_SUCCESS)
        calls->gpm_free(gpm->earlier);
    if (rc != NVML_SUCCESS)
        gpm->earlier = gpm->later = NULL;
    return rc;
}

static int sample(const struct nvml_calls *calls, struct nvml_gpm *gpm, struct nvml_device *device,
                  unsigned int gpu_instance)
{
    if (gpu_instance == NVML_NO_INSTANCE)
        return calls->gpm_get ? calls->gpm_get(device, gpm->later) : NVML_ERROR_FUNCTION_NOT_FOUND;
    return calls->gpm_get_mig ? calls->gpm_get_mig(device, gpu_instance, gpm->later) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* Asks for the metrics from `first` on, `count` of them, in one call. */
static int ask(const struct nvml_calls *calls, const struct nvml_gpm *gpm, size_t first, size_t count, int64_t now_ns,
               struct gpu_measure metrics[GPU_METRIC_COUNT])
{
    CLEANUP(free_ptr)
    struct nvml_gpm_metrics_get *get = xcalloc(1, sizeof *get + NVML_GPM_METRICS_ROOM * sizeof get->metrics[0]);
    int rc;

    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->count = (unsigned int)count;
    get->sample1 = gpm->earlier;
    get->sample2 = gpm->later;
    for (size_t i = 0; i < count; i++)
        get->metrics[i].id = wanted[first + i].id;
    rc = calls->gpm_metrics(get);
    if (rc != NVML_SUCCESS)
        return rc;
    for (size_t i = 0; i < count; i++) {
        double value = get->metrics[i].value, limit = wanted[first + i].limit;
        rc = nvml_worse(rc, get->metrics[i].nvml_return);
        /* A NaN fails the comparison. */
        if (get->metrics[i].nvml_return == NVML_SUCCESS && value >= 0 && value <= limit + ROUNDING)
            metrics[wanted[first + i].metric] =
                (struct gpu_measure){.source = GPU_SOURCE_GPM,
                                     .value = llround(fmin(value, limit) * wanted[first + i].scale),
                                     .at_ns = now_ns};
    }
    return rc;
}

/* All in one call or, where a library that does not know one of them refuses that, one by one. */
static int compare(const struct nvml_calls *calls, const struct nvml_gpm *gpm, int64_t now_ns,
                   struct gpu_measure metrics[GPU_METRIC_COUNT])
{
    int rc = ask(calls, gpm, 0, array_size(wanted), now_ns, metrics);

    if (rc == NVML_SUCCESS || nvml_device_failed(rc) || rc == NVML_ERROR_NO_PERMISSION)
        return rc;
    rc = NVML_SUCCESS;
    for (size_t i = 0; i < array_size(wanted) && !nvml_device_failed(rc); i++)
        rc = nvml_worse(rc, ask(calls, gpm, i, 1, now_ns, metrics));
    return rc;
}

int nvml_gpm_read(const struct nvml_calls *calls, struct nvml_gpm *gpm, struct nvml_device *device,
                  unsigned int gpu_instance, int64_t now_ns, struct gpu_measure metrics[GPU_METRIC_COUNT])
{
    struct nvml_gpm_sample *swap;
    bool comparable = gpm->sampled && now_ns >= gpm->earlier_ns; /* else the clock was set back */
    int rc = NVML_SUCCESS;

    if (!gpm->earlier && (rc = prepare(calls, gpm, device)) != NVML_SUCCESS)
        return nvml_worse(rc, NVML_SUCCESS);
    if (comparable && now_ns - gpm->earlier_ns < INTERVAL_NS)
        return NVML_SUCCESS;
    gpm->sampled = false;
    rc = sample(calls, gpm, device, gpu_instance);
    if (rc != NVML_SUCCESS)
        return nvml_worse(rc, NVML_SUCCESS);
    if (comparable)
        rc = compare(calls, gpm, now_ns, metrics);
    swap = gpm->earlier;
    gpm->earlier = gpm->later;
    gpm->later = swap;
    gpm->earlier_ns = now_ns;
    gpm->sampled = true;
    return rc;
}

void nvml_gpm_release(const struct nvml_calls *calls, struct nvml_gpm *gpm)
{
    if (gpm->earlier) {
        calls->gpm_free(gpm->earlier);
        calls->gpm_free(gpm->later);
    }
    memset(gpm, 0, sizeof *gpm);
}
