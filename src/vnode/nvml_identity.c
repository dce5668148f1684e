/* A device's identity: nothing here changes while the node lives. */
#include <stdio.h>
#include <string.h>

#include "vnode/nvml_node.h"

#define PCI_VENDOR_NVIDIA 0x10deu
#define PCIE_LANES        16

NVML_NUMBER(nvmlDeviceGetMinorNumber, nvml_gpu, device->gpu)
NVML_NUMBER(nvmlDeviceGetArchitecture, nvml_gpu, gpu->architecture)
NVML_NUMBER(nvmlDeviceGetBrand, nvml_gpu, NVML_BRAND_NVIDIA)
NVML_NUMBER(nvmlDeviceGetBusType, nvml_gpu, NVML_BUS_TYPE_PCIE)
NVML_NUMBER(nvmlDeviceGetNumGpuCores, nvml_gpu, gpu->cores)
NVML_NUMBER(nvmlDeviceGetComputeMode, nvml_gpu, NVML_COMPUTEMODE_DEFAULT)
NVML_NUMBER(nvmlDeviceGetPersistenceMode, nvml_gpu, NVML_FEATURE_ENABLED)
NVML_NUMBER(nvmlDeviceGetDisplayMode, nvml_gpu, NVML_FEATURE_DISABLED)
NVML_NUMBER(nvmlDeviceGetDisplayActive, nvml_gpu, NVML_FEATURE_DISABLED)
NVML_NUMBER(nvmlDeviceGetPerformanceState, nvml_gpu, 0)
NVML_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, nvml_gpu, gpu->pcie_generation)
NVML_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, nvml_gpu, gpu->pcie_generation)
NVML_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, nvml_gpu, PCIE_LANES)
NVML_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, nvml_gpu, PCIE_LANES)
NVML_NUMBER(nvmlDeviceGetPowerManagementMode, nvml_gpu, NVML_FEATURE_ENABLED)
NVML_NUMBER(nvmlDeviceGetPowerManagementLimit, nvml_gpu, gpu->power_limit_mw)
NVML_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, nvml_gpu, gpu->power_limit_mw)
NVML_NUMBER(nvmlDeviceGetEnforcedPowerLimit, nvml_gpu, gpu->power_limit_mw)

NVML_NUMBER(nvmlDeviceGetIndex, nvml_whole_gpu, nvml_index(device->gpu))

int nvmlDeviceGetUUID(struct nvml_device *device, char *text, unsigned int room)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_gpu(device, &gpu));
    return nvml_copy_text(device->instance ? gpu->instances[device->instance - 1].uuid : gpu->uuid, text, room);
}

int nvmlDeviceGetName(struct nvml_device *device, char *text, unsigned int room)
{
    const struct node_gpu *gpu;
    char name[NVML_NAME_ROOM + 32];

    NVML_ASK(nvml_gpu(device, &gpu));
    snprintf(name, sizeof name, "%s%s%s", gpu->name, device->instance ? " MIG " : "",
             device->instance ? gpu->instances[device->instance - 1].profile : "");
    return nvml_copy_text(name, text, room);
}

int nvmlDeviceGetSerial(struct nvml_device *device, char *text, unsigned int room)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    return rc == NVML_SUCCESS ? nvml_copy_text(gpu->serial, text, room) : rc;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *info)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_gpu(device, &gpu), info));
    *info = (struct nvml_pci_info){
        .bus = gpu->pci_bus,
        .pci_device_id = gpu->pci_device_id << 16 | PCI_VENDOR_NVIDIA,
    };
    snprintf(info->bus_id_old, sizeof info->bus_id_old, "0000:%02X:00.0", gpu->pci_bus & 0xff);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", gpu->pci_bus & 0xff);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info_v2 *info)
{
    struct nvml_pci_info now;

    NVML_ASK(nvml_checked(nvmlDeviceGetPciInfo_v3(device, &now), info));
    *info = (struct nvml_pci_info_v2){.bus = now.bus, .pci_device_id = now.pci_device_id};
    memcpy(info->bus_id, now.bus_id_old, sizeof info->bus_id);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info_v2 *info)
    __attribute__((alias("nvmlDeviceGetPciInfo_v2")));

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_gpu(device, &gpu), major && minor));
    *major = (int)gpu->compute_major;
    *minor = (int)gpu->compute_minor;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned int *min_mw, unsigned int *max_mw)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_gpu(device, &gpu), min_mw && max_mw));
    *min_mw = gpu->power_limit_min_mw;
    *max_mw = gpu->power_limit_mw;
    return NVML_SUCCESS;
}

/* Driver models are Windows's. */
int nvmlDeviceGetDriverModel(struct nvml_device *device, unsigned int *current, unsigned int *pending)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    return rc == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rc;
}

int nvmlDeviceGetDriverModel_v2(struct nvml_device *device, unsigned int *current, unsigned int *pending)
    __attribute__((alias("nvmlDeviceGetDriverModel")));
