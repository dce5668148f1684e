#include "gpu/nvml/facts.h"

#include <string.h>

static int read_small(const struct nvml_calls *calls, struct nvml_device *device, uint32_t kind, unsigned int *value)
{
    switch (kind) {
    case GPU_TEMPERATURE:
        return calls->temperature ? calls->temperature(device, NVML_TEMPERATURE_GPU, value)
                                  : NVML_ERROR_FUNCTION_NOT_FOUND;
    case GPU_SM_CLOCK:
        return calls->clock ? calls->clock(device, NVML_CLOCK_SM, value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    case GPU_SM_CLOCK_MOST:
        return calls->clock_most ? calls->clock_most(device, NVML_CLOCK_SM, value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    case GPU_MEMORY_CLOCK:
        return calls->clock ? calls->clock(device, NVML_CLOCK_MEM, value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    default:
        return calls->power_limit ? calls->power_limit(device, value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    }
}

static int read_large(const struct nvml_calls *calls, struct nvml_device *device, uint32_t kind,
                      unsigned long long *value)
{
    if (kind == GPU_THROTTLE)
        return calls->throttle ? calls->throttle(device, value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    return calls->ecc_errors
               ? calls->ecc_errors(device, kind == GPU_ECC_CORRECTED ? NVML_ECC_CORRECTED : NVML_ECC_UNCORRECTED,
                                   NVML_ECC_SINCE_LOADED, value)
               : NVML_ERROR_FUNCTION_NOT_FOUND;
}

void nvml_read_facts(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_fact facts[GPU_FACT_COUNT])
{
    for (uint32_t kind = 0; kind < GPU_FACT_COUNT; kind++) {
        unsigned long long large = 0;
        unsigned int small = 0;
        bool is_small = kind < GPU_ECC_CORRECTED;

        facts[kind] = (struct gpu_fact){.code = is_small ? read_small(calls, device, kind, &small)
                                                         : read_large(calls, device, kind, &large)};
        if (facts[kind].code != NVML_SUCCESS)
            continue;
        if (kind == GPU_THROTTLE)
            large &= (1u << GPU_THROTTLE_BITS) - 1; /* newer drivers may have further ones */
        facts[kind].value = is_small ? small : large <= INT64_MAX ? (int64_t)large : -1;
        if (!gpu_fact_plausible(&facts[kind], kind))
            facts[kind] = (struct gpu_fact){.code = NVML_ERROR_NO_DATA};
    }
}
