/* The virtual node's state file, version 1 (docs/formats/vnode-state.md): one struct node_file, mapped by everybody who
 * uses the node. Host byte order; fixed sizes. Times are node time in ns, sizes bytes.
 *
 * What changes lives in two banks. A writer holds the file's lock, works on the bank that is not active and then makes
 * it the active one by a single store: whoever dies in the middle leaves the active bank as it was. */
#ifndef CARMA_VNODE_LAYOUT_H
#define CARMA_VNODE_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#define NODE_MAGIC     "carmaVN"
#define NODE_VERSION   1
#define NODE_MAX_GPUS  16
#define NODE_MAX_SLOTS 256 /* processes on the node at one time */

/* What a GPU is: fixed when the node is made. */
struct node_gpu {
    char uuid[48];
    char name[96];
    char serial[32];
    int64_t total_bytes;    /* as NVML shows it */
    int64_t reserved_bytes; /* by the driver: jobs can use the rest */
    double idle_w;
    double full_w; /* at SM activity 1 */
    uint32_t power_limit_mw;
    uint32_t power_limit_min_mw;
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t architecture; /* NVML's number */
    uint32_t cores;
    uint32_t clock_idle_mhz;
    uint32_t clock_max_mhz;
    uint32_t clock_memory_mhz;
    uint32_t pci_bus;
    uint32_t pci_device_id;
    uint32_t pcie_generation;
};

/* What a GPU does. */
struct node_gpu_now {
    double sm_activity;    /* 0..1 */
    double busy;           /* 0..1: share of time in which some kernel runs */
    double energy_mj;      /* since the node was made */
    double sm_activity_ns; /* integral of sm_activity over node time */
    double busy_ns;
};

enum node_phase {
    NODE_SLOT_FREE = 0,
    NODE_SLOT_ATTACHED, /* may hold memory, runs no kernels */
    NODE_SLOT_LOADING,  /* becomes TRAINING at train_from_ns */
    NODE_SLOT_TRAINING,
    NODE_SLOT_FINISHED, /* its work is done; detaches next */
};

struct node_use { /* of one GPU by one process */
    uint32_t gpu;
    uint32_t reserved;
    double activity; /* solo SM activity, 0..1 */
    int64_t bytes;   /* held now */
};

struct node_slot { /* one process: pid and start time, as pids are reused */
    uint32_t phase;
    int32_t pid;
    uint64_t start_ticks;
    uint32_t mps; /* 1: came through MPS */
    uint32_t use_count;
    int64_t train_from_ns;
    int64_t finished_ns;
    double work_ns; /* at solo speed */
    double done_ns;
    double rate; /* of solo speed; 0 unless TRAINING */
    struct node_use uses[NODE_MAX_GPUS];
};

struct node_bank {
    int64_t updated_ns;    /* everything here is as of this moment */
    int64_t swept_wall_ns; /* CLOCK_MONOTONIC: when owners were last looked for in /proc */
    uint32_t slot_high;    /* slots from here on are free and undefined */
    uint32_t reserved;
    struct node_gpu_now gpus[NODE_MAX_GPUS];
    struct node_slot slots[NODE_MAX_SLOTS];
};

struct node_file {
    char magic[8];
    uint32_t version;
    uint32_t size; /* of this struct */
    uint32_t gpu_count;
    int32_t cuda_version; /* 1000 * major + 10 * minor */
    double time_scale;    /* CARMA_TIME_SCALE under which the node was made: the rate of its clock */
    char profile[48];
    char driver_version[32];
    _Atomic uint32_t generation; /* futex: grows whenever some process's rate changed */
    _Atomic uint32_t active;     /* 0 or 1: the bank that counts */
    struct node_gpu gpus[NODE_MAX_GPUS];
    struct node_bank banks[2];
};

#endif
