/* GPM, NVML's performance monitoring (Hopper and later): activity between two samples. Of this folder only. */
#ifndef CARMA_GPU_NVML_GPM_H
#define CARMA_GPU_NVML_GPM_H

#include "gpu/nvml/calls.h"
#include "gpu/reading.h"

/* The samples of one GPU or GPU instance. Zero-initialise. */
struct nvml_gpm {
    struct nvml_gpm_sample *earlier, *later; /* owned; NULL until GPM was found to be supported */
    bool sampled;                            /* `earlier` holds a sample, taken at earlier_ns */
    int64_t earlier_ns;                      /* node time */
};

/* Samples `device` (of which `gpu_instance`, or NVML_NO_INSTANCE: all of it) at now_ns and compares with the sample of
 * an earlier look. Sets the metrics that have a value. Without an earlier one, or where that is less than 100 ms old,
 * as NVML asks, there is none yet. Returns NVML's code: of a device that failed, NVML_ERROR_NO_PERMISSION where
 * anything was denied, else NVML_SUCCESS, also where GPM or some metric is not supported. */
int nvml_gpm_read(const struct nvml_calls *calls, struct nvml_gpm *gpm, struct nvml_device *device,
                  unsigned int gpu_instance, int64_t now_ns, struct gpu_measure metrics[GPU_METRIC_COUNT]);

void nvml_gpm_release(const struct nvml_calls *calls, struct nvml_gpm *gpm);

#endif
