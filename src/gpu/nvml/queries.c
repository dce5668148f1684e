#include "gpu/nvml/queries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

#define POWER_LIMIT_MW 100000000          /* no GPU draws 100 kW: a code for "not available" */
#define BLANK_INT64    0x7ffffffffffffff0 /* from here on integers are codes for "not available" */

void nvml_note_refused(struct gpu_reading *reading, enum gpu_reading_bit bit, int code)
{
    if (!(reading->valid & bit))
        reading->refused[__builtin_ctz(bit)] = (uint16_t)(code == NVML_SUCCESS ? NVML_ERROR_NO_DATA : code);
}

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
    if (v2.total == 0) /* as some Jetsons answer */
        return NVML_ERROR_NOT_SUPPORTED;
    if (v2.total > INT64_MAX || v2.reserved > v2.total || v2.used > v2.total - v2.reserved)
        return NVML_ERROR_UNKNOWN;
    reading->total_bytes = (int64_t)(v2.total - v2.reserved);
    reading->reserved_bytes = (int64_t)v2.reserved;
    reading->used_bytes = (int64_t)v2.used;
    reading->valid |= GPU_HAS_MEMORY;
    return rc;
}

/* ---- Unified memory ---- */

/* GPUs in one chip with the processor, by their compute capability: TX1, TX2, Xavier, Orin, Thor (by CUDA 12 and 13),
 * GB10. No other GPUs have these. */
static bool is_integrated(const struct nvml_calls *calls, struct nvml_device *handle)
{
    static const int capabilities[] = {53, 62, 72, 87, 101, 110, 121};
    int major, minor;

    if (!calls->compute_capability || calls->compute_capability(handle, &major, &minor) != NVML_SUCCESS)
        return false;
    for (size_t i = 0; i < array_size(capabilities); i++)
        if (capabilities[i] == 10 * major + minor)
            return true;
    return false;
}

/* The line "NAME:   123 kB" of /proc/meminfo, in bytes; -1: there is none. */
static int64_t field_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoll(at + strlen(name), NULL, 10) * 1024 : -1;
}

static bool read_host_memory(const struct nvml_calls *calls, int64_t *total_bytes, int64_t *available_bytes)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    if (calls->host_memory && calls->host_memory(total_bytes, available_bytes) == 0)
        return true;
    if (file_read("/proc/meminfo", 65536, &text, &length, NULL) < 0)
        return false;
    *total_bytes = field_of(text, "MemTotal:");
    *available_bytes = field_of(text, "MemAvailable:");
    return *total_bytes > 0 && *available_bytes >= 0 && *available_bytes <= *total_bytes;
}

/* An eighth is the host's own: who takes all of the memory freezes the machine. What the host uses within that is no
 * use of the GPU. */
void nvml_read_unified_memory(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    uint32_t listed = reading->process_count < GPU_MAX_PROCESSES ? reading->process_count : GPU_MAX_PROCESSES;
    int64_t total, available, host, processes = 0;

    if (!is_integrated(calls, device) || !read_host_memory(calls, &total, &available))
        return;
    for (uint32_t i = 0; i < listed; i++)
        if (reading->processes[i].used_bytes > 0)
            processes += reading->processes[i].used_bytes < total ? reading->processes[i].used_bytes : total;
    if (processes > total - available)
        processes = total - available;
    host = total - available - processes;
    reading->reserved_bytes = total / 8;
    reading->total_bytes = total - reading->reserved_bytes;
    reading->used_bytes = processes + (host > reading->reserved_bytes ? host - reading->reserved_bytes : 0);
    reading->valid |= GPU_HAS_MEMORY | GPU_UNIFIED;
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
