#include "gpu/nvml/queries.h"

#define POWER_LIMIT_MW 100000000          /* no GPU draws 100 kW: a code for "not available" */
#define BLANK_INT64    0x7ffffffffffffff0 /* from here on integers are codes for "not available" */

int nvml_read_memory(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    struct nvml_memory_v2 v2 = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory v1 = {0};
    int rc = calls->memory_v2 ? calls->memory_v2(device, &v2) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc != NVML_SUCCESS && !nvml_device_failed(rc)) {
        rc = calls->memory_v1 ? calls->memory_v1(device, &v1) : NVML_ERROR_FUNCTION_NOT_FOUND;
        v2 = (struct nvml_memory_v2){.total = v1.total, .used = v1.used};
    }
    if (rc != NVML_SUCCESS)
        return rc;
    if (v2.total == 0 || v2.total > INT64_MAX || v2.reserved > v2.total || v2.used > v2.total - v2.reserved)
        return NVML_ERROR_UNKNOWN;
    reading->total_bytes = (int64_t)(v2.total - v2.reserved);
    reading->reserved_bytes = (int64_t)v2.reserved;
    reading->used_bytes = (int64_t)v2.used;
    reading->valid |= GPU_HAS_MEMORY;
    return rc;
}

int nvml_read_utilization(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    struct nvml_utilization utilization = {0};
    int rc = calls->utilization ? calls->utilization(device, &utilization) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc == NVML_SUCCESS && utilization.gpu <= 100) {
        reading->utilization_permille = (int32_t)utilization.gpu * 10;
        reading->valid |= GPU_HAS_UTILIZATION;
    }
    return rc;
}

int nvml_read_power(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    unsigned int mw = 0;
    int rc = calls->power ? calls->power(device, &mw) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc == NVML_SUCCESS && mw <= POWER_LIMIT_MW) {
        reading->power_mw = mw;
        reading->valid |= GPU_HAS_POWER;
    }
    return rc;
}

int nvml_read_energy(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    unsigned long long mj = 0;
    int rc = calls->energy ? calls->energy(device, &mj) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc == NVML_SUCCESS && mj < BLANK_INT64) {
        reading->energy_mj = (int64_t)mj;
        reading->valid |= GPU_HAS_ENERGY;
    }
    return rc;
}
