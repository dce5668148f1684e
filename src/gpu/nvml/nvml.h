/* NVML as a source of readings, loaded by dlopen. Nothing is assumed that NVML does not promise. Every symbol may be
 * missing (the newest version of each is preferred, older ones are fallen back to), and every query may be refused.
 *
 * The library is the one that open() is given, else the one that the environment variable CARMA_NVML_LIBRARY names,
 * else libnvidia-ml.so.1, else libnvidia-ml.so.
 *
 * - memory: of nvmlDeviceGetMemoryInfo_v2, total_bytes = total - reserved, and used_bytes has no reserved part. The
 *   older call does not tell them apart: used_bytes includes the driver's part and reserved_bytes is 0.
 * - processes: the compute and the MPS list, each process once, sorted by pid. A list with impossible entries is read
 *   again by the older call: some drivers of the 535 series gave _v3 another layout without a new name.
 * - metrics: GPM's between two looks, where they are at least 100 ms of node time apart, as NVML asks. One that is
 *   refused does not lose the others.
 * - a GPU in MIG mode is GPU_PARTITIONED and its instances follow it, as they are at that look. An instance has memory,
 *   processes and GPM metrics of its own. At most GPU_MAX_DEVICES readings in all.
 * - Xids: the critical ones since open(), asked for without waiting.
 * - identity: at each look, by UUID. A GPU that NVML counts no more is read with the error NVML_ERROR_GPU_NOT_FOUND.
 * - a GPU that is to be skipped has the error NVML_ERROR_TIMEOUT.
 * - denied queries are named in `limits`.
 * - an impossible value (over its range, a code for "not available") counts as missing.
 *
 * read() fails where the driver was unloaded or replaced. Then no GPU answers any more, and only a new process is sure
 * to load the right library. */
#ifndef CARMA_GPU_NVML_NVML_H
#define CARMA_GPU_NVML_NVML_H

#include "gpu/backend.h"

extern const struct gpu_backend gpu_backend_nvml;

#endif
