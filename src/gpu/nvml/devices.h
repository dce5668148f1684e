/* Which GPUs there are. They are known by UUID and found anew by index at each look, since a driver may renumber them,
 * lose one and get one back. Of this folder only. */
#ifndef CARMA_GPU_NVML_DEVICES_H
#define CARMA_GPU_NVML_DEVICES_H

#include "gpu/nvml/events.h"
#include "gpu/nvml/gpm.h"
#include "gpu/nvml/mig.h"

struct nvml_known_device {
    char uuid[GPU_UUID_SIZE]; /* "" while NVML has not told it; then it is known for one look only */
    char name[GPU_NAME_SIZE];
    unsigned int index;
    int32_t minor;         /* N of its node /dev/nvidiaN; -1: not told */
    uint32_t compute;      /* as in struct gpu_reading */
    uint16_t compute_mode; /* enum nvml_compute_mode; the default where it is not told */
    struct nvml_device *handle;
    bool described;  /* name and minor number were told */
    int code;        /* NVML's, of the latest search: whether the GPU is there */
    bool seen;       /* by the search that runs */
    bool registered; /* for Xids, of this handle */
    struct nvml_gpm gpm;
    struct nvml_mig mig;
    uint32_t xid, xid_count;
    int64_t xid_at_ns;
};

/* Zero-initialise. */
struct nvml_devices {
    struct nvml_known_device *items[GPU_MAX_DEVICES]; /* owned, sorted by index */
    size_t count;
    unsigned int index_count; /* as NVML counted last */
    struct nvml_events events;
    uint64_t skip; /* as in struct gpu_backend_options */
    void (*touch)(void *user, int index);
    void *touch_user;
};

void nvml_devices_touch(const struct nvml_devices *devices, int index); /* says so */

/* Finds the GPUs. One that is gone is kept, with NVML_ERROR_GPU_NOT_FOUND; one that is there but does not answer has
 * its own code. Returns NVML's code of counting them; where that fails the last count is taken. */
int nvml_devices_find(const struct nvml_calls *calls, struct nvml_devices *devices);

/* Takes the Xids since the last look into the devices. Returns NVML's code of registering for them. */
int nvml_devices_take_xids(const struct nvml_calls *calls, struct nvml_devices *devices, int64_t now_ns);

void nvml_devices_release(const struct nvml_calls *calls, struct nvml_devices *devices);

#endif
