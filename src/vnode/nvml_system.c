#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "gpu/error_text.h"
#include "vnode/nvml_node.h"

/* While calls hang: how often is looked whether they still do, on the wall clock. */
#define HANG_LOOK_WALL_NS (5 * NS_PER_MS)

static pthread_mutex_t users_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users; /* calls of nvmlInit less those of nvmlShutdown */
static struct node node = {.fd = -1};
static uint32_t driver_loads;         /* when NVML was opened: a driver that was loaded since knows nothing of us */
static uint32_t order[NODE_MAX_GPUS]; /* of the indices, as of then too */
static struct nvml_device devices[NODE_MAX_GPUS][1 + NODE_MAX_INSTANCES];

/* A call into a driver that does not answer: holds nothing, and ends with the fault or with the process. */
static void wait_while_hung(uint32_t gpus)
{
    const struct timespec pause = {.tv_nsec = HANG_LOOK_WALL_NS};

    while ((fault_gpus(&node, NODE_FAULT_HANG) & gpus) == gpus)
        nanosleep(&pause, NULL);
}

static int open_node(void)
{
    int rc;

    if (node_open(&node, NULL, NULL) < 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    wait_while_hung(fault_all_gpus(&node));
    rc = fault_gpus(&node, NODE_FAULT_DRIVER_GONE) ? NVML_ERROR_DRIVER_NOT_LOADED
                                                   : fault_of_call(&node, "nvmlInit", fault_all_gpus(&node));
    if (rc != NVML_SUCCESS) {
        node_close(&node);
        return rc;
    }
    driver_loads = atomic_load(&node.file->driver_loads);
    for (uint32_t i = 0; i < NODE_MAX_GPUS; i++) {
        order[i] = atomic_load(&node.file->order[i]) % NODE_MAX_GPUS;
        for (uint32_t k = 0; k <= NODE_MAX_INSTANCES; k++)
            devices[i][k] = (struct nvml_device){.gpu = i, .instance = k};
    }
    return NVML_SUCCESS;
}

int nvmlInitWithFlags(unsigned int flags)
{
    int rc = NVML_SUCCESS;

    pthread_mutex_lock(&users_mutex);
    if (users == 0)
        rc = open_node();
    if (rc == NVML_SUCCESS)
        users++;
    pthread_mutex_unlock(&users_mutex);
    return rc;
}

int nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

int nvmlInit_v2(void) __attribute__((alias("nvmlInit")));

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
    return nvml_error_text(code);
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

struct node *nvml_node(void)
{
    return node.file ? &node : NULL;
}

/* To this call of these GPUs. */
static int driver_answers(const char *call, uint32_t gpus)
{
    if (fault_gpus(&node, NODE_FAULT_DRIVER_GONE))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (atomic_load(&node.file->driver_loads) != driver_loads)
        return NVML_ERROR_UNINITIALIZED;
    return fault_of_call(&node, call, gpus);
}

int nvml_ready_for(const char *call)
{
    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    wait_while_hung(fault_all_gpus(&node));
    return driver_answers(call, fault_all_gpus(&node));
}

/* Whether this is a handle of ours, rather than another value of the caller's. */
static bool is_handle(const struct nvml_device *device)
{
    for (uint32_t g = 0; g < node.file->gpu_count; g++)
        for (uint32_t k = 0; k <= node.file->gpus[g].instance_count; k++)
            if (device == &devices[g][k])
                return true;
    return false;
}

int nvml_gpu_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu)
{

    if (!node.file)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_handle(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    wait_while_hung(1u << device->gpu);
    NVML_ASK(driver_answers(call, 1u << device->gpu));
    if (fault_on(&node, NODE_FAULT_GPU_LOST, device->gpu))
        return NVML_ERROR_GPU_IS_LOST;
    *gpu = &node.file->gpus[device->gpu];
    return NVML_SUCCESS;
}

int nvml_whole_gpu_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu)
{
    int rc = nvml_gpu_for(call, device, gpu);

    return rc == NVML_SUCCESS && device->instance > 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}

int nvml_begin_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu, struct node_bank **bank)
{
    int rc = nvml_gpu_for(call, device, gpu);

    if (rc != NVML_SUCCESS)
        return rc;
    rc = node_begin(&node, bank);
    return rc == 0 ? NVML_SUCCESS : rc == -ETIMEDOUT ? NVML_ERROR_TIMEOUT : NVML_ERROR_UNKNOWN;
}

void nvml_end(void)
{
    node_commit(&node);
}

bool nvml_fault(const struct nvml_device *device, enum node_fault_kind kind)
{
    return fault_on(&node, kind, device->gpu);
}

struct nvml_device *nvml_handle(uint32_t gpu, uint32_t instance)
{
    return &devices[gpu][instance];
}

uint32_t nvml_index(uint32_t gpu)
{
    for (uint32_t i = 0; i < NODE_MAX_GPUS; i++)
        if (order[i] == gpu)
            return i;
    return gpu;
}

int nvmlSystemGetDriverVersion(char *text, unsigned int room)
{
    int rc = nvml_ready();

    return rc == NVML_SUCCESS ? nvml_copy_text(node.file->driver_version, text, room) : rc;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned int room)
{
    char version[64]; /* as the real one: the CUDA generation's major version, then the driver's version */

    NVML_ASK(nvml_ready());
    snprintf(version, sizeof version, "%d.%s", node.file->cuda_version / 1000, node.file->driver_version);
    return nvml_copy_text(version, text, room);
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    NVML_ASK(nvml_checked(nvml_ready(), version));
    *version = node.file->cuda_version;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) __attribute__((alias("nvmlSystemGetCudaDriverVersion")));

int nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int room)
{
    char path[64], name[1024];
    ssize_t length;
    int fd, rc = nvml_ready();

    if (rc != NVML_SUCCESS)
        return rc;
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
    NVML_ASK(nvml_checked(nvml_ready(), count));
    *count = node.file->gpu_count;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count) __attribute__((alias("nvmlDeviceGetCount")));

/* The handle, where the GPU answers. */
static int give_handle(const char *call, uint32_t gpu, uint32_t instance, struct nvml_device **device)
{
    const struct node_gpu *what;
    int rc = nvml_gpu_for(call, &devices[gpu][instance], &what);

    if (rc == NVML_SUCCESS)
        *device = &devices[gpu][instance];
    return rc;
}

int nvmlDeviceGetHandleByIndex(unsigned int index, struct nvml_device **device)
{
    NVML_ASK(nvml_ready());
    if (!device || index >= node.file->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_handle(__func__, order[index], 0, device);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvml_device **device)
    __attribute__((alias("nvmlDeviceGetHandleByIndex")));

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
    NVML_ASK(nvml_checked(nvml_ready(), uuid && device));
    for (uint32_t g = 0; g < node.file->gpu_count; g++) {
        const struct node_gpu *gpu = &node.file->gpus[g];

        if (strcasecmp(uuid, gpu->uuid) == 0)
            return give_handle(__func__, g, 0, device);
        for (uint32_t i = 0; i < gpu->instance_count; i++)
            if (strcasecmp(uuid, gpu->instances[i].uuid) == 0)
                return give_handle(__func__, g, 1 + i, device);
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
    NVML_ASK(nvml_checked(nvml_ready(), serial && device));
    for (uint32_t g = 0; g < node.file->gpu_count; g++)
        if (strcmp(serial, node.file->gpus[g].serial) == 0)
            return give_handle(__func__, g, 0, device);
    return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
    unsigned int domain = 0, bus, slot;

    NVML_ASK(nvml_ready());
    if (!bus_id || !device ||
        (sscanf(bus_id, "%x:%x:%x.", &domain, &bus, &slot) != 3 && sscanf(bus_id, "%x:%x.", &bus, &slot) != 2))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t g = 0; g < node.file->gpu_count; g++)
        if (domain == 0 && bus == node.file->gpus[g].pci_bus && slot == 0)
            return give_handle(__func__, g, 0, device);
    return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
    __attribute__((alias("nvmlDeviceGetHandleByPciBusId")));
