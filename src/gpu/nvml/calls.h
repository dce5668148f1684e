/* NVML's functions, as far as the loaded library has them. Of this folder only. */
#ifndef CARMA_GPU_NVML_CALLS_H
#define CARMA_GPU_NVML_CALLS_H

#include <stdbool.h>

#include "base/error.h"
#include "gpu/nvml/abi.h"

/* The versions of one process list: _v3 and _v2 have one layout, the first version another. */
struct nvml_list_calls {
    __typeof__(nvmlDeviceGetComputeRunningProcesses_v3) *v3, *v2;
    __typeof__(nvmlDeviceGetComputeRunningProcesses) *v1;
};

/* Any function but the first three may be NULL. */
struct nvml_calls {
    void *library;
    char path[256]; /* the loaded library, for error texts */
    __typeof__(nvmlInit_v2) *init;
    __typeof__(nvmlDeviceGetCount_v2) *count;
    __typeof__(nvmlDeviceGetHandleByIndex_v2) *handle;
    __typeof__(nvmlShutdown) *shutdown;
    __typeof__(nvmlErrorString) *error_string;
    __typeof__(nvmlDeviceGetUUID) *uuid;
    __typeof__(nvmlDeviceGetName) *name;
    __typeof__(nvmlDeviceGetMinorNumber) *minor;
    __typeof__(nvmlDeviceGetComputeMode) *compute_mode;
    __typeof__(nvmlDeviceGetCudaComputeCapability) *compute_capability;
    __typeof__(nvmlVirtualHostMemory) *host_memory;
    __typeof__(nvmlDeviceGetMemoryInfo_v2) *memory_v2;
    __typeof__(nvmlDeviceGetMemoryInfo) *memory_v1;
    struct nvml_list_calls compute;
    struct nvml_list_calls mps;
    __typeof__(nvmlDeviceGetUtilizationRates) *utilization;
    __typeof__(nvmlDeviceGetPowerUsage) *power;
    __typeof__(nvmlDeviceGetTotalEnergyConsumption) *energy;
    __typeof__(nvmlDeviceGetTemperature) *temperature;
    __typeof__(nvmlDeviceGetClockInfo) *clock;
    __typeof__(nvmlDeviceGetMaxClockInfo) *clock_most;
    __typeof__(nvmlDeviceGetEnforcedPowerLimit) *power_limit;
    __typeof__(nvmlDeviceGetTotalEccErrors) *ecc_errors;
    __typeof__(nvmlDeviceGetCurrentClocksEventReasons) *throttle;
    __typeof__(nvmlGpmQueryDeviceSupport) *gpm_support;
    __typeof__(nvmlGpmSampleAlloc) *gpm_alloc;
    __typeof__(nvmlGpmSampleFree) *gpm_free;
    __typeof__(nvmlGpmSampleGet) *gpm_get;
    __typeof__(nvmlGpmMigSampleGet) *gpm_get_mig;
    __typeof__(nvmlGpmMetricsGet) *gpm_metrics;
    __typeof__(nvmlDeviceGetMigMode) *mig_mode;
    __typeof__(nvmlDeviceGetMaxMigDeviceCount) *mig_count;
    __typeof__(nvmlDeviceGetMigDeviceHandleByIndex) *mig_handle;
    __typeof__(nvmlDeviceGetGpuInstanceId) *gpu_instance;
    __typeof__(nvmlDeviceGetComputeInstanceId) *compute_instance;
    __typeof__(nvmlDeviceGetAttributes_v2) *attributes;
    __typeof__(nvmlEventSetCreate) *events_create;
    __typeof__(nvmlDeviceRegisterEvents) *events_register;
    __typeof__(nvmlEventSetWait_v2) *events_wait;
    __typeof__(nvmlEventSetFree) *events_free;
};

/* Loads the library (nvml.h says which, for NULL) and finds its functions. */
int nvml_calls_load(struct nvml_calls *calls, const char *library, struct error *err);
void nvml_calls_unload(struct nvml_calls *calls);

/* Whether the code says that the GPU, or the driver under it, failed, rather than that one query is not to be had. */
bool nvml_device_failed(int code);
/* Whether it says that this whole session with the driver is over: nothing but a new one helps. */
bool nvml_session_over(int code);
/* The result of two codes: that the device failed, else NVML_ERROR_NO_PERMISSION, else NVML_SUCCESS. */
int nvml_worse(int a, int b);

const char *nvml_code_text(const struct nvml_calls *calls, int code); /* the library's words for it */

#endif
