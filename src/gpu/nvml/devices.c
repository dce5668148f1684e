#include "gpu/nvml/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/xid.h"

#define XIDS_PER_LOOK 256 /* a driver that reports more at once is not listened to any longer in this look */

void nvml_devices_touch(const struct nvml_devices *devices, int index)
{
    if (devices->touch)
        devices->touch(devices->touch_user, index);
}

static void forget(const struct nvml_calls *calls, struct nvml_devices *devices, size_t i)
{
    nvml_gpm_release(calls, &devices->items[i]->gpm);
    nvml_mig_release(calls, &devices->items[i]->mig);
    free(devices->items[i]);
    devices->items[i] = devices->items[--devices->count];
}

/* A new one, in the place of one that is gone where no other is free. */
static struct nvml_known_device *add(const struct nvml_calls *calls, struct nvml_devices *devices)
{
    for (size_t i = 0; i < devices->count && devices->count == GPU_MAX_DEVICES; i++)
        if (!devices->items[i]->seen)
            forget(calls, devices, i);
    return devices->items[devices->count++] = xcalloc(1, sizeof(struct nvml_known_device));
}

static struct nvml_known_device *by_uuid(const struct nvml_devices *devices, const char *uuid)
{
    for (size_t i = 0; i < devices->count; i++)
        if (strcmp(devices->items[i]->uuid, uuid) == 0)
            return devices->items[i];
    return NULL;
}

static struct nvml_known_device *unseen_at(const struct nvml_devices *devices, unsigned int index)
{
    for (size_t i = 0; i < devices->count; i++)
        if (devices->items[i]->index == index && !devices->items[i]->seen)
            return devices->items[i];
    return NULL;
}

static int identify(const struct nvml_calls *calls, unsigned int index, struct nvml_device **handle,
                    char uuid[static NVML_UUID_ROOM])
{
    int rc = calls->handle(index, handle);

    if (rc == NVML_SUCCESS)
        rc = calls->uuid ? calls->uuid(*handle, uuid, NVML_UUID_ROOM) : NVML_ERROR_FUNCTION_NOT_FOUND;
    uuid[NVML_UUID_ROOM - 1] = '\0';
    return rc == NVML_SUCCESS && (!uuid[0] || strlen(uuid) >= GPU_UUID_SIZE) ? NVML_ERROR_UNKNOWN : rc;
}

/* The facts that do not change, until all of them were told. */
static void describe(const struct nvml_calls *calls, struct nvml_known_device *device)
{
    char name[NVML_NAME_ROOM] = "";
    int name_rc = calls->name ? calls->name(device->handle, name, sizeof name) : NVML_ERROR_FUNCTION_NOT_FOUND;
    unsigned int minor = 0;
    int major = 0, fraction = 0;
    int minor_rc = calls->minor ? calls->minor(device->handle, &minor) : NVML_ERROR_FUNCTION_NOT_FOUND;

    name[sizeof name - 1] = '\0';
    if (name_rc != NVML_SUCCESS)
        snprintf(name, sizeof name, "GPU %u", device->index);
    snprintf(device->name, sizeof device->name, "%s", name);
    if (calls->compute_capability && calls->compute_capability(device->handle, &major, &fraction) == NVML_SUCCESS &&
        major > 0 && major < 1000 && fraction >= 0 && fraction < 10)
        device->compute = (uint32_t)(10 * major + fraction);
    device->minor = minor_rc == NVML_SUCCESS ? (int32_t)minor : -1;
    device->described = name_rc == NVML_SUCCESS && minor_rc == NVML_SUCCESS;
}

/* The device with this UUID is at this index. */
static void found(const struct nvml_calls *calls, struct nvml_devices *devices, unsigned int index,
                  struct nvml_device *handle, const char *uuid)
{
    struct nvml_known_device *device = by_uuid(devices, uuid);
    unsigned int mode;

    if (!device)
        device = add(calls, devices);
    if (device->handle != handle || device->code != NVML_SUCCESS) { /* of a GPU that was away nothing goes on */
        device->gpm.sampled = false;
        device->registered = false;
    }
    device->seen = true;
    device->code = NVML_SUCCESS;
    device->index = index;
    device->handle = handle;
    if (calls->compute_mode && calls->compute_mode(handle, &mode) == NVML_SUCCESS)
        device->compute_mode = (uint16_t)mode; /* else as before */
    snprintf(device->uuid, sizeof device->uuid, "%s", uuid);
    if (!device->described)
        describe(calls, device);
}

/* A device at this index does not tell its identity: the one that was there, if that was not found elsewhere. */
static void failed(const struct nvml_calls *calls, struct nvml_devices *devices, unsigned int index,
                   struct nvml_device *handle, int code)
{
    struct nvml_known_device *device = unseen_at(devices, index);

    if (device && device->handle && (!handle || handle == device->handle) && !nvml_device_failed(code))
        code = NVML_SUCCESS; /* the very same; the one query went wrong */
    if (!device) {
        device = add(calls, devices);
        device->index = index;
    }
    device->seen = true;
    device->code = code;
}

/* One that is gone comes after the one that has its index now. */
static int by_index(const void *left, const void *right)
{
    const struct nvml_known_device *a = *(struct nvml_known_device *const *)left;
    const struct nvml_known_device *b = *(struct nvml_known_device *const *)right;

    return a->index != b->index ? (a->index > b->index) - (a->index < b->index) : b->seen - a->seen;
}

int nvml_devices_find(const struct nvml_calls *calls, struct nvml_devices *devices)
{
    struct nvml_device *handles[GPU_MAX_DEVICES] = {NULL};
    int codes[GPU_MAX_DEVICES];
    unsigned int count = 0;
    int rc = calls->count(&count);

    if (rc == NVML_SUCCESS)
        devices->index_count = count < GPU_MAX_DEVICES ? count : GPU_MAX_DEVICES;
    for (size_t i = devices->count; i-- > 0;) {
        devices->items[i]->seen = false;
        if (!devices->items[i]->uuid[0])
            forget(calls, devices, i);
    }
    for (unsigned int i = 0; i < devices->index_count; i++) {
        char uuid[NVML_UUID_ROOM] = "";
        const struct nvml_known_device *known;
        codes[i] = NVML_ERROR_TIMEOUT;
        if (devices->skip >> i & 1)
            continue;
        nvml_devices_touch(devices, (int)i);
        codes[i] = identify(calls, i, &handles[i], uuid);
        known = codes[i] == NVML_SUCCESS ? by_uuid(devices, uuid) : NULL;
        if (known && known->seen)
            codes[i] = NVML_ERROR_UNKNOWN; /* two GPUs cannot have one UUID */
        if (codes[i] == NVML_SUCCESS)
            found(calls, devices, i, handles[i], uuid);
    }
    for (unsigned int i = 0; i < devices->index_count; i++)
        if (codes[i] != NVML_SUCCESS)
            failed(calls, devices, i, handles[i], codes[i]);
    for (size_t i = 0; i < devices->count; i++)
        if (!devices->items[i]->seen)
            devices->items[i]->code = NVML_ERROR_GPU_NOT_FOUND;
    if (devices->count)
        qsort(devices->items, devices->count, sizeof *devices->items, by_index);
    return rc;
}

static struct nvml_known_device *by_handle(const struct nvml_calls *calls, const struct nvml_devices *devices,
                                           struct nvml_device *handle)
{
    char uuid[NVML_UUID_ROOM] = "";

    for (size_t i = 0; i < devices->count; i++)
        if (devices->items[i]->handle == handle)
            return devices->items[i];
    if (!calls->uuid || calls->uuid(handle, uuid, sizeof uuid) != NVML_SUCCESS)
        return NULL;
    uuid[sizeof uuid - 1] = '\0';
    return uuid[0] ? by_uuid(devices, uuid) : NULL;
}

int nvml_devices_take_xids(const struct nvml_calls *calls, struct nvml_devices *devices, int64_t now_ns)
{
    struct nvml_event_data event;
    int rc = NVML_SUCCESS;

    for (size_t i = 0; i < devices->count; i++) {
        struct nvml_known_device *device = devices->items[i];
        int this_rc;
        if (device->registered || device->code != NVML_SUCCESS)
            continue;
        this_rc = nvml_events_register(calls, &devices->events, device->handle);
        device->registered = this_rc == NVML_SUCCESS || this_rc == NVML_ERROR_NOT_SUPPORTED;
        rc = nvml_worse(rc, this_rc);
    }
    for (int i = 0; i < XIDS_PER_LOOK && nvml_events_next(calls, &devices->events, &event); i++) {
        struct nvml_known_device *device = by_handle(calls, devices, event.device);
        if (!device)
            continue;
        device->xid_count++;
        if (xid_follows((uint32_t)event.data, now_ns, device->xid, device->xid_at_ns))
            continue;
        device->xid = (uint32_t)event.data;
        device->xid_at_ns = now_ns;
    }
    return rc;
}

void nvml_devices_release(const struct nvml_calls *calls, struct nvml_devices *devices)
{
    while (devices->count)
        forget(calls, devices, devices->count - 1);
    nvml_events_release(calls, &devices->events);
}
