/* DCGM as a source of metrics that NVML itself cannot measure: SM activity and the like on GPUs before Hopper. Loaded
 * by dlopen: the library that open() is given, else the one that CARMA_DCGM_LIBRARY names, else libdcgm.so.4, else
 * .so.3.
 *
 * - An engine that runs (nv-hostengine on localhost, or on its usual Unix socket) is asked first. Else one is started
 *   within this process, which as a rule must be root's to profile. CARMA_DCGM_ENGINE names the one engine to ask
 *   instead: HOST, HOST:PORT, or the path of a Unix socket.
 * - All fields of a GPU are watched together; where the GPU cannot measure them at once, in smaller groups, the more
 *   important fields first.
 * - A MIG instance is found by its parent's UUID and NVML's two instance ids. Its values are those of the compute
 *   instance, else of the GPU instance.
 * - Blanks, impossible values, values that are too old, and zeros that stay after an Xid while NVML sees kernels
 *   run are not values.
 * Lost connections and errors that may pass are retried, after 1 s, 2 s, ... 64 s.
 *
 * Never met a real DCGM yet. */
#ifndef CARMA_GPU_DCGM_DCGM_H
#define CARMA_GPU_DCGM_DCGM_H

#include "gpu/metric_source.h"

#define GPU_DCGM_LIBRARY_ENV "CARMA_DCGM_LIBRARY"
#define GPU_DCGM_ENGINE_ENV  "CARMA_DCGM_ENGINE"

extern const struct gpu_metric_source gpu_source_dcgm;

#endif
