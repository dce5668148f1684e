/* Event sets: the Xids that were injected (vnode/fault.h). */
#include <stdlib.h>
#include <time.h>

#include "base/units.h"
#include "vnode/nvml_node.h"

struct nvml_event_set {
    uint32_t gpus; /* bit g: GPU g's events are asked for */
    uint32_t seen; /* of the node's xid_count */
};

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *types)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), types));
    *types = NVML_EVENT_XID_CRITICAL_ERROR;
    return NVML_SUCCESS;
}

int nvmlEventSetCreate(struct nvml_event_set **set)
{

    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    NVML_ASK(nvml_ready());
    *set = calloc(1, sizeof **set);
    if (!*set)
        return NVML_ERROR_MEMORY;
    (*set)->seen = atomic_load(&nvml_node()->file->xid_count); /* earlier events are not reported */
    return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), set));
    if (types & ~NVML_EVENT_XID_CRITICAL_ERROR)
        return NVML_ERROR_NOT_SUPPORTED;
    if (types)
        set->gpus |= 1u << device->gpu;
    return NVML_SUCCESS;
}

/* Takes the next event that the set asks for. */
static bool next_event(struct nvml_event_set *set, const struct node_file *file, struct nvml_event_data *data)
{
    uint32_t count = atomic_load(&file->xid_count);

    if (count - set->seen > NODE_MAX_XIDS)
        set->seen = count - NODE_MAX_XIDS; /* older ones are forgotten */
    while (set->seen != count) {
        struct node_xid event = file->xids[set->seen++ % NODE_MAX_XIDS];
        const struct node_gpu *gpu = &file->gpus[event.gpu % NODE_MAX_GPUS];
        bool instance = event.instance > 0 && event.instance <= gpu->instance_count;

        if (event.gpu >= file->gpu_count || !(set->gpus >> event.gpu & 1))
            continue;
        *data = (struct nvml_event_data){
            .device = nvml_handle(event.gpu, 0),
            .type = NVML_EVENT_XID_CRITICAL_ERROR,
            .data = event.xid,
            .gpu_instance_id = instance ? gpu->instances[event.instance - 1].gpu_instance : NVML_NO_INSTANCE,
            .compute_instance_id = instance ? gpu->instances[event.instance - 1].compute_instance : NVML_NO_INSTANCE,
        };
        return true;
    }
    return false;
}

static int64_t monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* The time-out is wall time, as the caller's. */
int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms)
{
    int64_t until_ns = monotonic_ns() + timeout_ms * NS_PER_MS;

    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (;;) {
        int64_t left_ns = until_ns - monotonic_ns();
        struct node *node;
        uint32_t generation;
        int rc = nvml_ready();

        if (rc != NVML_SUCCESS)
            return rc;
        node = nvml_node();
        generation = atomic_load(&node->file->generation); /* before the look: an Xid after it ends the wait */
        if (next_event(set, node->file, data))
            return NVML_SUCCESS;
        if (left_ns <= 0)
            return NVML_ERROR_TIMEOUT;
        node_wait(node, generation, left_ns);
    }
}

int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms)
    __attribute__((alias("nvmlEventSetWait_v2")));

int nvmlEventSetFree(struct nvml_event_set *set)
{
    free(set);
    return NVML_SUCCESS;
}
