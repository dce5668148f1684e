/* Event sets. The node has no event to tell: a wait lasts until its time-out (wall time). */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "vnode/nvml_node.h"

struct nvml_event_set {
    unsigned long long types;
};

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *types)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    if (rc != NVML_SUCCESS)
        return rc;
    if (!types)
        return NVML_ERROR_INVALID_ARGUMENT;
    *types = NVML_EVENT_XID_CRITICAL_ERROR;
    return NVML_SUCCESS;
}

int nvmlEventSetCreate(struct nvml_event_set **set)
{
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set)
{
    const struct node_gpu *gpu;
    int rc = nvml_gpu(device, &gpu);

    if (rc != NVML_SUCCESS)
        return rc;
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~NVML_EVENT_XID_CRITICAL_ERROR)
        return NVML_ERROR_NOT_SUPPORTED;
    set->types |= types;
    return NVML_SUCCESS;
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms)
{
    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    poll(NULL, 0, timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX);
    return NVML_ERROR_TIMEOUT;
}

int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
    free(set);
    return NVML_SUCCESS;
}
