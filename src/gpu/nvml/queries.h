/* The simple queries of one handle, a GPU's or an instance's. Each returns NVML's code and sets its bit of
 * reading->valid where it has a value that can be. Of this folder only. */
#ifndef CARMA_GPU_NVML_QUERIES_H
#define CARMA_GPU_NVML_QUERIES_H

#include "gpu/nvml/calls.h"
#include "gpu/reading.h"

/* Notes why the bit is missing from `valid`; nothing where it is there. */
void nvml_note_refused(struct gpu_reading *reading, enum gpu_reading_bit bit, int code);

int nvml_read_memory(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);
/* Of a GPU in one chip with the processor, where NVML tells of no memory of its own: the host's, after the processes
 * were read. */
void nvml_read_unified_memory(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);

int nvml_read_utilization(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);
int nvml_read_power(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);
int nvml_read_energy(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);

#endif
