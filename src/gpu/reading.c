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

const char *gpu_fact_name(uint32_t fact)
{
    static const char *const names[GPU_FACT_COUNT] = {
        "temperature_c",  "sm_clock_mhz",  "sm_clock_most_mhz", "memory_clock_mhz",
        "power_limit_mw", "ecc_corrected", "ecc_uncorrected",   "throttle",
    };

    return fact < GPU_FACT_COUNT ? names[fact] : "unknown";
}

const char *gpu_throttle_name(uint32_t bit)
{
    static const char *const names[GPU_THROTTLE_BITS] = {
        "idle", "set_clocks",    "power_limit",  "hardware", "other_gpu",
        "heat", "hardware_heat", "power_supply", "display",
    };

    return bit < GPU_THROTTLE_BITS ? names[bit] : "unknown";
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

bool gpu_fact_plausible(const struct gpu_fact *fact, uint32_t kind)
{
    static const int64_t most[GPU_FACT_COUNT] = {
        [GPU_TEMPERATURE] = 1000,
        [GPU_SM_CLOCK] = 100000,
        [GPU_SM_CLOCK_MOST] = 100000,
        [GPU_MEMORY_CLOCK] = 100000,
        [GPU_POWER_LIMIT] = 100000000,            /* no GPU draws 100 kW: a code for "not available" */
        [GPU_ECC_CORRECTED] = 0x7fffffffffffffef, /* from there on integers are codes for "not available" */
        [GPU_ECC_UNCORRECTED] = 0x7fffffffffffffef,
        [GPU_THROTTLE] = (1 << GPU_THROTTLE_BITS) - 1,
    };

    return fact->code != 0 || (fact->value >= 0 && fact->value <= most[kind]);
}
