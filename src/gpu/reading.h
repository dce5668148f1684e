/* One look at the node's GPUs, as carma-monitor takes it: every value with a validity bit, so that "unsupported" is
 * never zero. Plain data; also the wire format between carma-monitor and the daemon (gpu/frame.h). */
#ifndef CARMA_GPU_READING_H
#define CARMA_GPU_READING_H

#include <stdint.h>

#define GPU_UUID_SIZE 48
#define GPU_NAME_SIZE 96
#define GPU_MAX_DEVICES 64
#define GPU_MAX_PROCESSES 128 /* per GPU; more are counted in process_count, not listed */

enum gpu_reading_bit {
    GPU_HAS_MEMORY = 1u << 0,      /* total, reserved, used */
    GPU_HAS_PROCESSES = 1u << 1,   /* the list is complete up to GPU_MAX_PROCESSES */
    GPU_HAS_UTILIZATION = 1u << 2, /* NVML's coarse "any kernel ran" */
    GPU_HAS_SM_ACTIVITY = 1u << 3, /* GPM SM_UTIL over the last interval */
    GPU_HAS_POWER = 1u << 4,
    GPU_HAS_ENERGY = 1u << 5,
};

struct gpu_process {
    int32_t pid;
    uint32_t mps;       /* 1: listed as an MPS client */
    int64_t used_bytes; /* -1: the driver does not say */
};

struct gpu_reading {
    char uuid[GPU_UUID_SIZE]; /* "" while it cannot be read; then `error` says why */
    char name[GPU_NAME_SIZE];
    uint32_t index; /* NVML's: may change between boots; identity is the UUID */
    uint32_t valid; /* enum gpu_reading_bit */
    int32_t error;  /* NVML's return code where the device itself failed (e.g. 15 GPU_IS_LOST), else 0 */
    int32_t utilization_permille;
    int32_t sm_activity_permille;
    uint32_t process_count;
    int64_t total_bytes;    /* what jobs can use: NVML's total - reserved where it tells them apart */
    int64_t reserved_bytes; /* by driver and firmware; 0 where NVML does not tell */
    int64_t used_bytes;     /* by processes */
    int64_t power_mw;
    int64_t energy_mj; /* since the driver was loaded: difference it */
    struct gpu_process processes[GPU_MAX_PROCESSES];
};

struct gpu_node_reading {
    int64_t at_ns; /* node time */
    uint32_t count;
    struct gpu_reading gpus[GPU_MAX_DEVICES];
};

#endif
