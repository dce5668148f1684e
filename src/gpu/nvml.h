/* NVML as a source of readings, loaded by dlopen. Nothing is assumed that NVML does not promise: every symbol may be
 * missing (the newest version of each is preferred, older ones are fallen back to), every query may be refused.
 *
 * The library is the one that open() is given, else the one that the environment variable CARMA_NVML_LIBRARY names,
 * else libnvidia-ml.so.1, else libnvidia-ml.so.
 *
 * - memory: of nvmlDeviceGetMemoryInfo_v2, total_bytes = total - reserved, and used_bytes has no reserved part; of the
 *   older call, which does not tell them apart, used_bytes includes what the driver reserves and reserved_bytes is 0.
 * - processes: the compute and the MPS list, each process once, sorted by pid. A list with impossible entries (some
 *   drivers of the 535 series gave _v3 another layout without a new name) is read again by the older call.
 * - SM activity: GPM's SM_UTIL between two looks, where they are at least 100 ms of node time apart, as NVML asks.
 * - utilization is no SM activity and never stands in for it.
 *
 * A GPU in MIG mode is read as a whole, as far as NVML reads it so; its MIG devices are not looked into. */
#ifndef CARMA_GPU_NVML_H
#define CARMA_GPU_NVML_H

#include "gpu/backend.h"

#define GPU_NVML_LIBRARY_ENV "CARMA_NVML_LIBRARY"

extern const struct gpu_backend gpu_backend_nvml;

#endif
