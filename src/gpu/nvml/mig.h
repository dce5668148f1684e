/* The MIG instances of one GPU. carma finds them, by UUID, and never makes or removes one. Of this folder only. */
#ifndef CARMA_GPU_NVML_MIG_H
#define CARMA_GPU_NVML_MIG_H

#include <stddef.h>

#include "gpu/nvml/gpm.h"
#include "gpu/nvml/processes.h"

struct nvml_instance {
    struct nvml_device *handle;
    char uuid[GPU_UUID_SIZE];
    char name[GPU_NAME_SIZE];
    struct nvml_instance_ids ids;
    uint16_t part_permille; /* of the parent's slices; 0: not told */
    struct nvml_gpm gpm;
    bool seen;      /* by the search that runs */
    bool described; /* all of the above that does not change was told */
};

/* Zero-initialise. */
struct nvml_mig {
    bool on;                         /* the GPU is in MIG mode */
    bool told;                       /* whether it is was told at least once */
    int refused;                     /* NVML's code where it never was, or where instances are not; else 0 */
    struct nvml_instance *instances; /* owned */
    size_t count;
    size_t capacity;
};

/* Looks whether the GPU is in MIG mode and which instances it has now; the known facts of those that stay are kept.
 * Returns NVML's code of a failed device, NVML_ERROR_NO_PERMISSION where something was denied, or NVML_SUCCESS. */
int nvml_mig_find(const struct nvml_calls *calls, struct nvml_mig *mig, struct nvml_device *parent,
                  const char *parent_name);

/* Fills an instance's own readings: memory, processes, GPM. Codes as above. */
int nvml_instance_read(const struct nvml_calls *calls, struct nvml_instance *instance, struct nvml_device *parent,
                       struct gpu_reading *reading);

void nvml_mig_release(const struct nvml_calls *calls, struct nvml_mig *mig);

#endif
