/* A device's identity: nothing here changes while the node lives. */
#include <stdio.h>
#include <string.h>

#include "vnode/nvml_node.h"

#define PCI_VENDOR_NVIDIA 0x10deu
#define PCIE_LANES        16

/* Defines a query of one fixed number. */
#define FIXED(function, expression)                                                                                    \
    int function(struct nvml_device *device, unsigned int *value)                                                      \
    {                                                                                                                  \
        const struct node_gpu *gpu;                                                                                    \
        int rc = nvml_gpu(device, &gpu);                                                                               \
                                                                                                                       \
        if (rc != NVML_SUCCESS)                                                                                        \
            return rc;                                                                                                 \
        if (!value)                                                                                                    \
            return NVML_ERROR_INVALID_ARGUMENT;                                                                        \
        *value = (expression);                                                                                         \
        return NVML_SUCCESS;                                                                                           \
    }

FIXED(nvmlDeviceGetMinorNumber, device->gpu)
FIXED(nvmlDeviceGetArchitecture, gpu->architecture)
FIXED(nvmlDeviceGetBrand, NVML_BRAND_NVIDIA)
FIXED(nvmlDeviceGetBusType, NVML_BUS_TYPE_PCIE)
FIXED(nvmlDeviceGetNumGpuCores, gpu->cores)
FIXED(nvmlDeviceGetComputeMode, NVML_COMPUTEMODE_DEFAULT)
FIXED(nvmlDeviceGetPersistenceMode, NVML_FEATURE_ENABLED)
FIXED(nvmlDeviceGetDisplayMode, NVML_FEATURE_DISABLED)
FIXED(nvmlDeviceGetDisplayActive, NVML_FEATURE_DISABLED)
FIXED(nvmlDeviceGetPerformanceState, 0)
FIXED(nvmlDeviceGetMaxPcieLinkGeneration, gpu->pcie_generation)
FIXED(nvmlDeviceGetCurrPcieLinkGeneration, gpu->pcie_generation)
FIXED(nvmlDeviceGetMaxPcieLinkWidth, PCIE_LANES)
FIXED(nvmlDeviceGetCurrPcieLinkWidth, PCIE_LANES)
FIXED(nvmlDeviceGetPowerManagementMode, NVML_FEATURE_ENABLED)
FIXED(nvmlDeviceGetPowerManagementLimit, gpu->power_limit_mw)
FIXED(nvmlDeviceGetPowerManagementDefaultLimit, gpu->power_limit_mw)
FIXED(nvmlDeviceGetEnforcedPowerLimit, gpu->power_limit_mw)

int nvmlDeviceGetIndex(struct nvml_device *device, unsigned int *index)
{
    const struct node_gpu *gpu;
    int rc = nvml_checked(nvml_whole_gpu(device, &gpu), index);

    if (rc != NVML_SUCCESS)
        return rc;
    *index = nvml_index(device->gpu);
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *text, unsigned int room)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    if (rc != NVML_SUCCESS)
        return rc;
    return nvml_copy_text(device->instance ? gpu->instances[device->instance - 1].uuid : gpu->uuid, text, room);
}

int nvmlDeviceGetName(struct nvml_device *device, char *text, unsigned int room)
{
    const struct node_gpu *gpu;
    char name[NVML_NAME_ROOM + 32];
    int rc = nvml_gpu(device, &gpu);

    if (rc != NVML_SUCCESS)
        return rc;
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
    int rc = nvml_checked(nvml_gpu(device, &gpu), info);

    if (rc != NVML_SUCCESS)
        return rc;
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
    int rc = nvml_checked(nvmlDeviceGetPciInfo_v3(device, &now), info);

    if (rc != NVML_SUCCESS)
        return rc;
    *info = (struct nvml_pci_info_v2){.bus = now.bus, .pci_device_id = now.pci_device_id};
    memcpy(info->bus_id, now.bus_id_old, sizeof info->bus_id);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info_v2 *info)
{
    return nvmlDeviceGetPciInfo_v2(device, info);
}

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
    const struct node_gpu *gpu;
    int rc = nvml_checked(nvml_gpu(device, &gpu), major && minor);

    if (rc != NVML_SUCCESS)
        return rc;
    *major = (int)gpu->compute_major;
    *minor = (int)gpu->compute_minor;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned int *min_mw, unsigned int *max_mw)
{
    const struct node_gpu *gpu;
    int rc = nvml_checked(nvml_gpu(device, &gpu), min_mw && max_mw);

    if (rc != NVML_SUCCESS)
        return rc;
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
{
    return nvmlDeviceGetDriverModel(device, current, pending);
}
