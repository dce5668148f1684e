#include "gpu/reading.h"

const char *gpu_metric_name(uint32_t metric)
{
    static const char *const names[GPU_METRIC_COUNT] = {
        "sm_activity", "sm_occupancy", "dram_activity", "tensor_activity", "pcie_tx", "pcie_rx", "graphics_activity",
    };

    return metric < GPU_METRIC_COUNT ? names[metric] : "unknown";
}

const char *gpu_source_name(uint32_t source)
{
    static const char *const names[GPU_SOURCE_COUNT] = {"none", "gpm", "dcgm", "utilization"};

    return source < GPU_SOURCE_COUNT ? names[source] : "unknown";
}

bool gpu_measure_plausible(const struct gpu_measure *measure, uint32_t metric)
{
    bool activity = metric != GPU_PCIE_TX && metric != GPU_PCIE_RX;

    if (measure->source >= GPU_SOURCE_COUNT || measure->at_ns < 0)
        return false;
    if (measure->source == GPU_SOURCE_UTILIZATION && metric != GPU_SM_ACTIVITY)
        return false;
    return measure->source == GPU_SOURCE_NONE || (measure->value >= 0 && (!activity || measure->value <= 1000));
}
