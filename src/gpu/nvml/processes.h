/* The processes of one GPU, or of one MIG instance, through NVML. Of this folder only. */
#ifndef CARMA_GPU_NVML_PROCESSES_H
#define CARMA_GPU_NVML_PROCESSES_H

#include "gpu/nvml/calls.h"
#include "gpu/reading.h"

struct nvml_instance_ids {
    unsigned int gpu, compute; /* NVML_NO_INSTANCE: not told */
};

/* Fills process_count, processes and, where the list is complete, GPU_HAS_PROCESSES. memory_bytes: how much the GPU has
 * in all, or -1: not known. Returns NVML's code of the compute list, the caller judging whether the GPU failed. */
int nvml_processes_read(const struct nvml_calls *calls, struct nvml_device *device, int64_t memory_bytes,
                        struct gpu_reading *reading);

/* The same for an instance: by its own handle or, where that is refused, those of its parent's list that bear its ids.
 */
int nvml_processes_read_instance(const struct nvml_calls *calls, struct nvml_device *instance,
                                 struct nvml_device *parent, const struct nvml_instance_ids *ids, int64_t memory_bytes,
                                 struct gpu_reading *reading);

#endif
