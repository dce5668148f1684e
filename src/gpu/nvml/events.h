/* Critical Xids through NVML's event sets. Of this folder only. */
#ifndef CARMA_GPU_NVML_EVENTS_H
#define CARMA_GPU_NVML_EVENTS_H

#include "gpu/nvml/calls.h"

/* Zero-initialise. */
struct nvml_events {
    struct nvml_event_set *set; /* owned; NULL where the library has no events */
};

/* From now on the device's Xids are queued. Returns NVML's code; a device without such events has not failed.
 */
int nvml_events_register(const struct nvml_calls *calls, struct nvml_events *events, struct nvml_device *device);

/* Takes the next critical Xid off the queue; never waits. */
bool nvml_events_next(const struct nvml_calls *calls, const struct nvml_events *events, struct nvml_event_data *event);

void nvml_events_release(const struct nvml_calls *calls, struct nvml_events *events);

#endif
