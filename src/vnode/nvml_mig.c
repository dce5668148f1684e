/* GPUs in MIG mode and their instances. A node's instances are made with it; nobody can change them. */
#include <math.h>

#include "base/units.h"
#include "vnode/nvml_node.h"

#define MIG_DEVICES 7 /* at most, on a GPU in MIG mode */

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned int *current, unsigned int *pending)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), current && pending));
    *current = *pending = gpu->mig ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

NVML_NUMBER(nvmlDeviceIsMigDeviceHandle, nvml_gpu, device->instance > 0)
NVML_NUMBER(nvmlDeviceGetMaxMigDeviceCount, nvml_whole_gpu, gpu->mig ? MIG_DEVICES : 0)

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned int index, struct nvml_device **mig)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), mig));
    if (index >= gpu->instance_count)
        return NVML_ERROR_NOT_FOUND;
    *mig = nvml_handle(device->gpu, 1 + index);
    return NVML_SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig, struct nvml_device **device)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_gpu(mig, &gpu));
    if (!device || mig->instance == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = nvml_handle(mig->gpu, 0);
    return NVML_SUCCESS;
}

/* The GPU of a MIG handle. */
static int instance_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu)
{
    int rc = nvml_gpu_for(call, device, gpu);

    return rc == NVML_SUCCESS && device->instance == 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}

#define gpu_of_instance(device, gpu) instance_for(__func__, device, gpu)

NVML_NUMBER(nvmlDeviceGetGpuInstanceId, gpu_of_instance, gpu->instances[device->instance - 1].gpu_instance)
NVML_NUMBER(nvmlDeviceGetComputeInstanceId, gpu_of_instance, gpu->instances[device->instance - 1].compute_instance)

/* An eighth of the GPU's SMs, in pairs, is a slice: 14 of the A100's 108 and 16 of the H100's 132, as in reality.
 */
static unsigned int slice_multiprocessors(const struct node_gpu *gpu)
{
    unsigned int cores_each = gpu->architecture >= NVML_DEVICE_ARCH_HOPPER ? 128 : 64;

    return 2 * (unsigned int)lround(gpu->cores / cores_each / 16.0);
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_attributes *attributes)
{
    const struct node_instance *instance;
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(gpu_of_instance(device, &gpu), attributes));
    instance = &gpu->instances[device->instance - 1];
    *attributes = (struct nvml_attributes){
        .multiprocessor_count = instance->slices * slice_multiprocessors(gpu),
        .copy_engines = instance->slices,
        .gpu_instance_slices = instance->slices,
        .compute_instance_slices = instance->slices,
        .memory_mib = (unsigned long long)(instance->total_bytes / MIB),
    };
    return NVML_SUCCESS;
}
