/* One look at the node's GPUs, as carma-monitor takes it: every value with a validity bit or a source, so that
 * "unsupported" is never zero. Plain data; also the wire format between carma-monitor and the daemon (gpu/frame.h). */
#ifndef CARMA_GPU_READING_H
#define CARMA_GPU_READING_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_UUID_SIZE     48
#define GPU_NAME_SIZE     96
#define GPU_MAX_DEVICES   64  /* MIG instances included */
#define GPU_MAX_PROCESSES 128 /* per GPU; more are counted in process_count, not listed */

enum gpu_reading_bit {
    GPU_HAS_MEMORY = 1u << 0,      /* total, reserved, used */
    GPU_HAS_PROCESSES = 1u << 1,   /* the list is complete up to GPU_MAX_PROCESSES */
    GPU_HAS_UTILIZATION = 1u << 2, /* NVML's coarse "any kernel ran" */
    GPU_HAS_POWER = 1u << 3,
    GPU_HAS_ENERGY = 1u << 4,
    GPU_UNIFIED = 1u << 5, /* no GPU_HAS bit: its memory is the host's, of which reserved_bytes are left to the host */
};

/* What NVML refused to tell, by the number of the bit that is missing from `valid`, and this: */
enum { GPU_REFUSED_MIG = 6, GPU_REFUSED_COUNT = 8 };

/* Metrics measured over an interval. Activities and occupancy: permille, 0..1000; traffic: bytes a second. */
enum gpu_metric {
    GPU_SM_ACTIVITY,     /* share of SMs with a warp on them, over time (GPM SM_UTIL, DCGM 1002) */
    GPU_SM_OCCUPANCY,    /* warps on the SMs, of the most there can be (GPM SM_OCCUPANCY, DCGM 1003) */
    GPU_DRAM_ACTIVITY,   /* share of cycles in which device memory was read or written (GPM DRAM_BW_UTIL, DCGM 1005) */
    GPU_TENSOR_ACTIVITY, /* share of cycles in which a tensor pipe was busy (GPM ANY_TENSOR, DCGM 1004) */
    GPU_PCIE_TX,         /* from the GPU to the host (GPM 20, DCGM 1009) */
    GPU_PCIE_RX,         /* from the host to the GPU (GPM 21, DCGM 1010) */
    GPU_GRAPHICS_ACTIVITY, /* share of time in which some engine was busy, however little (GPM GRAPHICS_UTIL, DCGM 1001)
                            */
    GPU_METRIC_COUNT
};

/* Where a metric is from: the first of the chain that has it. */
enum gpu_source {
    GPU_SOURCE_NONE, /* not to be had; `value` means nothing */
    GPU_SOURCE_GPM,  /* NVML's performance monitoring, Hopper and later */
    GPU_SOURCE_DCGM,
    GPU_SOURCE_UTILIZATION, /* of GPU_SM_ACTIVITY alone: NVML's utilisation, an upper bound that stands in for it */
    GPU_SOURCE_COUNT
};

struct gpu_measure {
    uint32_t source; /* enum gpu_source */
    uint32_t zero;   /* padding, 0 */
    int64_t value;
    int64_t at_ns; /* node time of the interval's end: how old the value is */
};

/* How a GPU fares, beside what jobs use of it. Nothing is decided by these. */
enum gpu_fact_kind {
    GPU_TEMPERATURE, /* degrees Celsius */
    GPU_SM_CLOCK,    /* MHz */
    GPU_SM_CLOCK_MOST,
    GPU_MEMORY_CLOCK,
    GPU_POWER_LIMIT,     /* mW, as enforced */
    GPU_ECC_CORRECTED,   /* errors of memory since the driver was loaded */
    GPU_ECC_UNCORRECTED, /* the same */
    GPU_THROTTLE,        /* bits: why its clocks are not higher (gpu_throttle_name) */
    GPU_FACT_COUNT
};

#define GPU_THROTTLE_BITS 9
/* Of these the ones by which it is slower than it should be: slowed by its hardware, by heat, by the power supply. */
#define GPU_THROTTLE_TROUBLE (0x8 | 0x20 | 0x40 | 0x80)

struct gpu_fact {
    int64_t value;
    int32_t code;  /* NVML's, by which it refused to tell; 0: told */
    uint32_t zero; /* padding, 0 */
};

enum gpu_kind {
    GPU_WHOLE,
    GPU_PARTITIONED, /* in MIG mode: jobs run on its instances, which are readings of their own */
    GPU_INSTANCE,    /* a MIG instance; power, energy and Xids are its parent's */
    GPU_KIND_COUNT
};

struct gpu_process {
    int32_t pid;
    uint32_t mps;       /* 1: listed as an MPS client */
    int64_t used_bytes; /* -1: the driver does not say */
};

struct gpu_reading {
    char uuid[GPU_UUID_SIZE];   /* "" while it cannot be read; then `error` says why */
    char parent[GPU_UUID_SIZE]; /* GPU_INSTANCE: the UUID of the GPU that it is a part of; else "" */
    char name[GPU_NAME_SIZE];
    uint32_t index;        /* NVML's: may change between boots; identity is the UUID. An instance has its parent's */
    uint32_t gpu_instance; /* GPU_INSTANCE: NVML's id of its GPU instance within the parent */
    uint32_t compute_instance; /* GPU_INSTANCE: and of its compute instance within that */
    uint32_t kind;             /* enum gpu_kind */
    uint32_t valid;            /* enum gpu_reading_bit */
    int32_t error;             /* NVML's return code where the device itself failed (e.g. 15 GPU_IS_LOST), else 0 */
    int32_t minor;             /* N of its node /dev/nvidiaN, of an instance its parent's; -1: not told */
    uint16_t compute_mode;     /* enum nvml_compute_mode */
    uint16_t
        part_permille; /* GPU_INSTANCE: of the parent's slices, those it computes on; 0: not told, or no instance */
    int32_t utilization_permille;
    uint32_t process_count;
    uint32_t xid;           /* the latest critical one since carma-monitor began, no consequence of another; 0: none */
    uint32_t xid_count;     /* how many there were since then */
    uint32_t compute;       /* compute capability: 80 is 8.0; of an instance its parent's; 0: not told */
    uint32_t zero;          /* padding, 0 */
    int64_t xid_at_ns;      /* node time at which the latest was observed; 0: never */
    int64_t total_bytes;    /* memory that jobs can use: NVML's total - reserved where it tells them apart */
    int64_t reserved_bytes; /* by driver and firmware; 0 where NVML does not tell */
    int64_t used_bytes;     /* by processes */
    int64_t power_mw;
    int64_t energy_mj;                   /* since the driver was loaded: difference it, and expect it to start again */
    uint16_t refused[GPU_REFUSED_COUNT]; /* NVML's return codes; 0: told. Of MIG: of a GPU_WHOLE whether it is in MIG
                                            mode was never told, whatever `error` says; of a GPU_PARTITIONED some of its
                                            instances are not */
    struct gpu_measure metrics[GPU_METRIC_COUNT];
    struct gpu_fact facts[GPU_FACT_COUNT]; /* of an instance its parent's, and not here */
    struct gpu_process processes[GPU_MAX_PROCESSES];
};

struct gpu_node_reading {
    int64_t at_ns; /* node time */
    uint32_t count;
    uint32_t zero;    /* padding, 0 */
    char limits[160]; /* one line on unmeasured metrics and why ("no permission for ..."), or "" */
    struct gpu_reading gpus[GPU_MAX_DEVICES];
};

const char *gpu_metric_name(uint32_t metric); /* "sm_activity", ..., "pcie_tx"; "unknown" out of range */
const char *gpu_source_name(uint32_t source); /* "none", "gpm", "dcgm", "utilization"; "unknown" out of range */

const char *gpu_fact_name(uint32_t fact);    /* "temperature_c", ..., "throttle"; "unknown" out of range */
const char *gpu_throttle_name(uint32_t bit); /* "idle", ..., "hardware_heat", by the bit's number; the same */

const char *gpu_refused_name(uint32_t what); /* "memory", ..., "MIG mode"; "unknown" out of range */
const char *gpu_error_text(int32_t code);    /* of NVML's return codes: "Not supported" */

/* Whether jobs may be placed by what is known of it. */
bool gpu_reading_usable(const struct gpu_reading *reading);

/* Whether it can be: a known source, and a value within the metric's range (always, without a source). */
bool gpu_measure_plausible(const struct gpu_measure *measure, uint32_t metric);

/* The same of a figure that was told. */
bool gpu_fact_plausible(const struct gpu_fact *fact, uint32_t kind);

#endif
