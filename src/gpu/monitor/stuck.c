#include "gpu/monitor/stuck.h"

#include <string.h>

_Static_assert(GPU_SOURCE_COUNT *GPU_METRIC_COUNT <= 32, "too many metrics for the bits of one integer");

static uint32_t bit_of(uint32_t source, uint32_t metric)
{
    return UINT32_C(1) << (source * GPU_METRIC_COUNT + metric);
}

static bool seems_to_work(const struct gpu_reading *gpu)
{
    return ((gpu->valid & GPU_HAS_UTILIZATION) && gpu->utilization_permille > 0) ||
           ((gpu->valid & GPU_HAS_PROCESSES) && gpu->process_count > 0);
}

/* The reading that tells of a GPU's Xids: an instance's parent, where it is there, since it comes first. */
static const struct gpu_reading *whole_of(const struct gpu_node_reading *reading, uint32_t i)
{
    for (uint32_t whole = i; whole-- > 0 && reading->gpus[i].kind == GPU_INSTANCE;)
        if (strcmp(reading->gpus[whole].uuid, reading->gpus[i].parent) == 0)
            return &reading->gpus[whole];
    return &reading->gpus[i];
}

static bool drop_from(struct gpu_stuck_device *device, struct gpu_reading *gpu)
{
    bool dropped = false;

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        if (gpu->metrics[metric].source != GPU_SOURCE_NONE && gpu->metrics[metric].value > 0)
            device->moved |= bit_of(gpu->metrics[metric].source, metric);
    if (!seems_to_work(gpu))
        return false;
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        struct gpu_measure *measure = &gpu->metrics[metric];
        uint32_t proof = bit_of(measure->source, metric) | bit_of(measure->source, GPU_SM_ACTIVITY);
        if (measure->source != GPU_SOURCE_NONE && !(device->moved & proof)) {
            *measure = (struct gpu_measure){0};
            dropped = true;
        }
    }
    return dropped;
}

bool gpu_stuck_drop(struct gpu_stuck *stuck, struct gpu_node_reading *reading)
{
    bool dropped = false;

    for (uint32_t i = 0; i < reading->count; i++) {
        struct gpu_stuck_device *device = &stuck->devices[i];
        struct gpu_reading *gpu = &reading->gpus[i];
        uint32_t xid_count = whole_of(reading, i)->xid_count;

        if (strcmp(device->uuid, gpu->uuid) != 0 || device->xid_count != xid_count) {
            *device = (struct gpu_stuck_device){.xid_count = xid_count, .look_ns = reading->at_ns};
            memcpy(device->uuid, gpu->uuid, sizeof device->uuid);
        }
        if (xid_count > 0 && device->look_ns != reading->at_ns)
            dropped |= drop_from(device, gpu);
    }
    return dropped;
}
