#include "gpu/nvml/events.h"

#include <stddef.h>

int nvml_events_register(const struct nvml_calls *calls, struct nvml_events *events, struct nvml_device *device)
{
    int rc = NVML_SUCCESS;

    if (!calls->events_create || !calls->events_register || !calls->events_wait || !calls->events_free)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    if (!events->set)
        rc = calls->events_create(&events->set);
    if (rc != NVML_SUCCESS) {
        events->set = NULL;
        return rc;
    }
    return calls->events_register(device, NVML_EVENT_XID_CRITICAL_ERROR, events->set);
}

bool nvml_events_next(const struct nvml_calls *calls, const struct nvml_events *events, struct nvml_event_data *event)
{
    /* Any other code, NVML_ERROR_TIMEOUT as a rule, ends this look's share. */
    while (events->set && calls->events_wait(events->set, event, 0) == NVML_SUCCESS)
        if (event->type & NVML_EVENT_XID_CRITICAL_ERROR)
            return true;
    return false;
}

void nvml_events_release(const struct nvml_calls *calls, struct nvml_events *events)
{
    if (events->set)
        calls->events_free(events->set);
    events->set = NULL;
}
