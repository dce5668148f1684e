#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "vnode/nvml_node.h"

static pthread_mutex_t users_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users; /* calls of nvmlInit less those of nvmlShutdown */
static struct node node = {.fd = -1};
static struct nvml_device devices[NODE_MAX_GPUS];

int nvmlInitWithFlags(unsigned int flags)
{
    int rc = NVML_SUCCESS;

    pthread_mutex_lock(&users_mutex);
    if (users == 0 && node_open(&node, NULL, NULL) < 0)
        rc = NVML_ERROR_DRIVER_NOT_LOADED;
    else
        users++;
    for (uint32_t i = 0; i < NODE_MAX_GPUS; i++)
        devices[i].index = i;
    pthread_mutex_unlock(&users_mutex);
    return rc;
}

int nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

int nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

int nvmlShutdown(void)
{
    int rc = NVML_SUCCESS;

    pthread_mutex_lock(&users_mutex);
    if (users == 0)
        rc = NVML_ERROR_UNINITIALIZED;
    else if (--users == 0)
        node_close(&node);
    pthread_mutex_unlock(&users_mutex);
    return rc;
}

const char *nvmlErrorString(int code)
{
    static const char *const texts[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not supported",
        [NVML_ERROR_NO_PERMISSION] = "No permission",
        [NVML_ERROR_ALREADY_INITIALIZED] = "Already initialized",
        [NVML_ERROR_NOT_FOUND] = "Not found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient size",
        [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient external power",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver not loaded",
        [NVML_ERROR_TIMEOUT] = "Timeout",
        [NVML_ERROR_IRQ_ISSUE] = "Interrupt request issue",
        [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML shared library not found",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function not found",
        [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
        [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
        [NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
        [NVML_ERROR_OPERATING_SYSTEM] = "GPU access blocked by the operating system",
        [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver and library version mismatch",
        [NVML_ERROR_IN_USE] = "In use by another client",
        [NVML_ERROR_MEMORY] = "Insufficient memory",
        [NVML_ERROR_NO_DATA] = "No data",
        [NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "ECC is enabled, which vGPU does not support",
        [NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient resources",
        [NVML_ERROR_FREQ_NOT_SUPPORTED] = "Frequency not supported",
        [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Version of the argument not supported",
        [NVML_ERROR_DEPRECATED] = "Deprecated",
        [NVML_ERROR_NOT_READY] = "Not ready",
        [NVML_ERROR_GPU_NOT_FOUND] = "No GPU found",
        [NVML_ERROR_INVALID_STATE] = "Invalid state",
    };

    return code >= 0 && code < (int)(sizeof texts / sizeof *texts) ? texts[code] : "Unknown error";
}

int nvml_copy_text(const char *text, char *to, unsigned int room)
{
    size_t length = strlen(text);

    if (!to)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (length >= room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, length + 1);
    return NVML_SUCCESS;
}

int nvml_gpu(struct nvml_device *device, const struct node_gpu **gpu)
{
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    for (uint32_t i = 0; i < node.file->gpu_count; i++)
        if (device == &devices[i]) {
            *gpu = &node.file->gpus[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

int nvml_begin(struct nvml_device *device, const struct node_gpu **gpu, struct node_bank **bank)
{
    int rc = nvml_gpu(device, gpu);

    if (rc != NVML_SUCCESS)
        return rc;
    rc = node_begin(&node, bank);
    return rc == 0 ? NVML_SUCCESS : rc == -ETIMEDOUT ? NVML_ERROR_TIMEOUT : NVML_ERROR_UNKNOWN;
}

void nvml_end(void)
{
    node_commit(&node);
}

int nvmlSystemGetDriverVersion(char *text, unsigned int room)
{
    return node.file ? nvml_copy_text(node.file->driver_version, text, room) : NVML_ERROR_UNINITIALIZED;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned int room)
{
    char version[64]; /* as the real one: the CUDA generation's major version, then the driver's version */

    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    snprintf(version, sizeof version, "%d.%s", node.file->cuda_version / 1000, node.file->driver_version);
    return nvml_copy_text(version, text, room);
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    *version = node.file->cuda_version;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

int nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int room)
{
    char path[64], name[1024];
    ssize_t length;
    int fd;

    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    if (!text || room == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NO_PERMISSION;
    length = read(fd, name, sizeof name - 1);
    close(fd);
    name[length > 0 ? length : 0] = '\0'; /* its first word ends where the arguments begin */
    snprintf(text, room, "%s", name);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount(unsigned int *count)
{
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    *count = node.file->gpu_count;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    return nvmlDeviceGetCount(count);
}

int nvmlDeviceGetHandleByIndex(unsigned int index, struct nvml_device **device)
{
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    if (!device || index >= node.file->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[index];
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvml_device **device)
{
    return nvmlDeviceGetHandleByIndex(index, device);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < node.file->gpu_count; i++)
        if (strcasecmp(uuid, node.file->gpus[i].uuid) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByUUIDV(const struct nvml_uuid *uuid, struct nvml_device **device)
{
    if (!uuid)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != NVML_VERSION(struct nvml_uuid, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type != 1)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!memchr(uuid->value.text, '\0', sizeof uuid->value.text))
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByUUID(uuid->value.text, device);
}

int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device)
{
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    if (!serial || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < node.file->gpu_count; i++)
        if (strcmp(serial, node.file->gpus[i].serial) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
    unsigned int domain = 0, bus, slot;

    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    if (!bus_id || !device ||
        (sscanf(bus_id, "%x:%x:%x.", &domain, &bus, &slot) != 3 && sscanf(bus_id, "%x:%x.", &bus, &slot) != 2))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < node.file->gpu_count; i++)
        if (domain == 0 && bus == node.file->gpus[i].pci_bus && slot == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
    return nvmlDeviceGetHandleByPciBusId(bus_id, device);
}
