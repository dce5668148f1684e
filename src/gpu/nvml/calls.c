#include "gpu/nvml/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"

/* Sets the function pointer at `slot` to the first of two names that the library has, or to NULL. */
static void find(const struct nvml_calls *calls, void *slot, const char *name, const char *older)
{
    void *function = dlsym(calls->library, name);

    if (!function && older)
        function = dlsym(calls->library, older);
    memcpy(slot, &function, sizeof function); /* ISO C converts no object pointer to a function pointer */
}

static void find_all(struct nvml_calls *calls)
{
    find(calls, &calls->init, "nvmlInit_v2", "nvmlInit");
    find(calls, &calls->count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
    find(calls, &calls->handle, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
    find(calls, &calls->shutdown, "nvmlShutdown", NULL);
    find(calls, &calls->error_string, "nvmlErrorString", NULL);
    find(calls, &calls->uuid, "nvmlDeviceGetUUID", NULL);
    find(calls, &calls->name, "nvmlDeviceGetName", NULL);
    find(calls, &calls->minor, "nvmlDeviceGetMinorNumber", NULL);
    find(calls, &calls->compute_mode, "nvmlDeviceGetComputeMode", NULL);
    find(calls, &calls->compute_capability, "nvmlDeviceGetCudaComputeCapability", NULL);
    find(calls, &calls->host_memory, "nvmlVirtualHostMemory", NULL);
    find(calls, &calls->memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL);
    find(calls, &calls->memory_v1, "nvmlDeviceGetMemoryInfo", NULL);
    find(calls, &calls->compute.v3, "nvmlDeviceGetComputeRunningProcesses_v3", NULL);
    find(calls, &calls->compute.v2, "nvmlDeviceGetComputeRunningProcesses_v2", NULL);
    find(calls, &calls->compute.v1, "nvmlDeviceGetComputeRunningProcesses", NULL);
    find(calls, &calls->mps.v3, "nvmlDeviceGetMPSComputeRunningProcesses_v3", NULL);
    find(calls, &calls->mps.v2, "nvmlDeviceGetMPSComputeRunningProcesses_v2", NULL);
    find(calls, &calls->mps.v1, "nvmlDeviceGetMPSComputeRunningProcesses", NULL);
    find(calls, &calls->utilization, "nvmlDeviceGetUtilizationRates", NULL);
    find(calls, &calls->power, "nvmlDeviceGetPowerUsage", NULL);
    find(calls, &calls->energy, "nvmlDeviceGetTotalEnergyConsumption", NULL);
    find(calls, &calls->temperature, "nvmlDeviceGetTemperature", NULL);
    find(calls, &calls->clock, "nvmlDeviceGetClockInfo", NULL);
    find(calls, &calls->clock_most, "nvmlDeviceGetMaxClockInfo", NULL);
    find(calls, &calls->power_limit, "nvmlDeviceGetEnforcedPowerLimit", NULL);
    find(calls, &calls->ecc_errors, "nvmlDeviceGetTotalEccErrors", NULL);
    find(calls, &calls->throttle, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons");
    find(calls, &calls->gpm_support, "nvmlGpmQueryDeviceSupport", NULL);
    find(calls, &calls->gpm_alloc, "nvmlGpmSampleAlloc", NULL);
    find(calls, &calls->gpm_free, "nvmlGpmSampleFree", NULL);
    find(calls, &calls->gpm_get, "nvmlGpmSampleGet", NULL);
    find(calls, &calls->gpm_get_mig, "nvmlGpmMigSampleGet", NULL);
    find(calls, &calls->gpm_metrics, "nvmlGpmMetricsGet", NULL);
    find(calls, &calls->mig_mode, "nvmlDeviceGetMigMode", NULL);
    find(calls, &calls->mig_count, "nvmlDeviceGetMaxMigDeviceCount", NULL);
    find(calls, &calls->mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex", NULL);
    find(calls, &calls->gpu_instance, "nvmlDeviceGetGpuInstanceId", NULL);
    find(calls, &calls->compute_instance, "nvmlDeviceGetComputeInstanceId", NULL);
    find(calls, &calls->attributes, "nvmlDeviceGetAttributes_v2", NULL);
    find(calls, &calls->events_create, "nvmlEventSetCreate", NULL);
    find(calls, &calls->events_register, "nvmlDeviceRegisterEvents", NULL);
    find(calls, &calls->events_wait, "nvmlEventSetWait_v2", "nvmlEventSetWait");
    find(calls, &calls->events_free, "nvmlEventSetFree", NULL);
}

int nvml_calls_load(struct nvml_calls *calls, const char *library, struct error *err)
{
    const char *named = library && *library ? library : getenv(GPU_NVML_LIBRARY_ENV);

    memset(calls, 0, sizeof *calls);
    if (named && *named) {
        calls->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (!calls->library)
            return error_set(err, ENOENT, "cannot load the NVML library %s (%s): correct its path", named, dlerror());
    } else {
        named = "libnvidia-ml.so.1";
        calls->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (!calls->library) {
            error_set(err, ENOENT,
                      "cannot load %s (%s): install the NVIDIA driver, or name the library with --library or %s", named,
                      dlerror(), GPU_NVML_LIBRARY_ENV);
            named = "libnvidia-ml.so";
            calls->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        }
        if (!calls->library)
            return -ENOENT;
    }
    snprintf(calls->path, sizeof calls->path, "%s", named);
    find_all(calls);
    if (calls->init && calls->count && calls->handle)
        return 0;
    nvml_calls_unload(calls);
    return error_set(err, ENOSYS,
                     "%s lacks NVML's basic functions: it is not NVIDIA's library, name another one with "
                     "--library or " GPU_NVML_LIBRARY_ENV,
                     named);
}

void nvml_calls_unload(struct nvml_calls *calls)
{
    if (calls->library)
        dlclose(calls->library);
    memset(calls, 0, sizeof *calls);
}

bool nvml_device_failed(int code)
{
    switch (code) {
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_IRQ_ISSUE:
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_RESET_REQUIRED:
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
    case NVML_ERROR_GPU_NOT_FOUND:
        return true;
    default:
        return false;
    }
}

bool nvml_session_over(int code)
{
    return code == NVML_ERROR_UNINITIALIZED || code == NVML_ERROR_DRIVER_NOT_LOADED ||
           code == NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

int nvml_worse(int a, int b)
{
    if (nvml_device_failed(a) || nvml_device_failed(b))
        return nvml_device_failed(a) ? a : b;
    return a == NVML_ERROR_NO_PERMISSION || b == NVML_ERROR_NO_PERMISSION ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

const char *nvml_code_text(const struct nvml_calls *calls, int code)
{
    const char *text = calls->error_string ? calls->error_string(code) : NULL;

    return text ? text : "NVML error";
}
