/* The simple queries of one handle, a GPU's or an instance's. Each returns NVML's code and sets its bit of
 * reading->valid where it has a value that can be. Of this folder only. */
#ifndef CARMA_GPU_NVML_QUERIES_H
#define CARMA_GPU_NVML_QUERIES_H

#include "gpu/nvml/calls.h"
#include "gpu/reading.h"

int nvml_read_memory(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);
int nvml_read_utilization(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);
int nvml_read_power(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);
int nvml_read_energy(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading);

#endif
