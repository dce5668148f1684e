#include "gpu/reading.h"

#include <stddef.h>

#include "gpu/error_text.h"

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

const char *gpu_refused_name(uint32_t what)
{
    static const char *const names[GPU_REFUSED_COUNT] = {"memory", "processes", "utilisation", "power",
                                                         "energy", NULL,        "MIG mode",    NULL};

    return what < GPU_REFUSED_COUNT && names[what] ? names[what] : "unknown";
}

const char *gpu_error_text(int32_t code)
{
    return nvml_error_text(code);
}

bool gpu_reading_usable(const struct gpu_reading *reading)
{
    return reading->error == 0 && reading->uuid[0] && reading->kind != GPU_PARTITIONED &&
           reading->valid & GPU_HAS_MEMORY && !reading->refused[GPU_REFUSED_MIG];
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
