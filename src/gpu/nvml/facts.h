/* How a GPU fares: its facts (gpu/reading.h). Of this folder only. */
#ifndef CARMA_GPU_NVML_FACTS_H
#define CARMA_GPU_NVML_FACTS_H

#include "gpu/nvml/calls.h"
#include "gpu/reading.h"

/* Each that is refused has the code for it; no GPU is lost or closed by that. */
void nvml_read_facts(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_fact facts[GPU_FACT_COUNT]);

#endif
