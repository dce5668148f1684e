/* The virtual node's state file, version 3 (docs/formats/vnode-state.md): one struct node_file, mapped by every process
 * that uses the node. Host byte order; fixed sizes. Times are node time in ns, sizes bytes.
 *
 * Changing data lives in two banks. A writer holds the file's lock, works on the bank that is not active and then makes
 * it the active one by a single store. A writer that dies in the middle leaves the active bank as it was. */
#ifndef CARMA_VNODE_LAYOUT_H
#define CARMA_VNODE_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#define NODE_MAGIC         "carmaVN"
#define NODE_VERSION       4
#define NODE_MAX_GPUS      16
#define NODE_MAX_INSTANCES 7   /* MIG instances of a GPU */
#define NODE_MAX_SLOTS     256 /* processes on the node at one time */
#define NODE_MAX_FAULTS    32  /* kinds of faults (vnode/fault.h) */
#define NODE_MAX_XIDS      64  /* that are remembered */
#define NODE_MAX_CALLS     64  /* of NVML that are made to fail at one time */

/* A MIG instance: a GPU instance with one compute instance, which is all of it. Fixed when the node is made. */
struct node_instance {
    char uuid[48];       /* "MIG-..." */
    char profile[16];    /* "3g.20gb" */
    int64_t total_bytes; /* nothing of it is reserved */
    uint32_t slices;     /* of the GPU's 7 */
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t reserved;
};

/* A GPU's properties: fixed when the node is made. */
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
    uint32_t gpm;            /* 1: answers GPM's queries */
    uint32_t mig;            /* 1: in MIG mode, jobs run on the instances only */
    uint32_t instance_count; /* with mig */
    uint32_t unified;        /* 1: its memory is the host's, of which NVML tells nothing */
    struct node_instance instances[NODE_MAX_INSTANCES];
};

/* A MIG instance's state, of its own part of the GPU; as in struct node_gpu_now. */
struct node_instance_now {
    double sm_activity;
    double busy;
    double sm_activity_ns;
    double busy_ns;
};

/* A GPU's state. */
struct node_gpu_now {
    double sm_activity;    /* 0..1 */
    double busy;           /* 0..1: share of time in which some kernel runs */
    double energy_mj;      /* since the node was made */
    double sm_activity_ns; /* integral of sm_activity over node time */
    double busy_ns;
    double energy_hidden_mj; /* of energy_mj, the part that the driver's counter lost when the driver was loaded anew */
    struct node_instance_now instances[NODE_MAX_INSTANCES];
};

enum node_phase {
    NODE_SLOT_FREE = 0,
    NODE_SLOT_ATTACHED, /* may hold memory, runs no kernels */
    NODE_SLOT_LOADING,  /* becomes TRAINING at train_from_ns */
    NODE_SLOT_TRAINING,
    NODE_SLOT_FINISHED, /* its work is done; detaches next */
    NODE_SLOT_STOPPED,  /* was TRAINING, and is stopped by a signal: it runs no kernels until it goes on */
};

struct node_use { /* of one GPU by one process */
    uint32_t gpu;
    uint32_t instance; /* 0: the whole GPU; else its MIG instance instances[instance - 1] */
    double activity;   /* solo SM activity on the whole GPU, 0..1 */
    int64_t bytes;     /* held now */
};

struct node_slot { /* one process: pid and start time, as pids are reused */
    uint32_t phase;
    int32_t pid;
    uint64_t start_ticks;
    uint32_t mps; /* 1: came through MPS */
    uint32_t use_count;
    uint64_t mps_domain;    /* with mps: which control daemon's (attach_mps_domain); 0: not told apart */
    int32_t mps_server_pid; /* set by the control daemon; 0: not yet */
    uint32_t uid;
    uint32_t fault;           /* the CUDA error with which the process has to end at its next look; 0: none */
    uint32_t threads_percent; /* with mps: of a GPU's threads, that it may use at most; 0: all */
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

/* A fault of the driver that was injected, by its kind. In force while `gpus` is not 0 and until_ns has not passed.
 * Read without the lock: a call that hangs must hold nothing. */
struct node_fault {
    _Atomic uint32_t gpus; /* bit g: GPU g */
    uint32_t reserved;
    _Atomic int64_t until_ns;
};

/* An NVML call that fails with a code, likewise. Its name and code are written while it is not in force. */
struct node_call_fault {
    char call[52]; /* without the suffix of its version */
    int32_t code;
    _Atomic uint32_t gpus;
    uint32_t reserved;
    _Atomic int64_t until_ns;
};

struct node_xid {
    int64_t at_ns;
    uint32_t gpu;
    uint32_t xid;
    int32_t pid;       /* that caused it; 0: nobody in particular */
    uint32_t instance; /* as in struct node_use */
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
    uint64_t spread_seed;          /* of how unlike workloads of one activity are (contention.h) */
    _Atomic uint32_t generation;   /* futex: grows whenever some process's rate changed */
    _Atomic uint32_t active;       /* 0 or 1: the bank that counts */
    _Atomic uint32_t driver_loads; /* times the driver was loaded anew: a process that opened NVML before that has to
                                      open it again */
    _Atomic uint32_t xid_count;    /* since the node was made; the latest is xids[(xid_count - 1) % NODE_MAX_XIDS] */
    _Atomic uint32_t order[NODE_MAX_GPUS]; /* order[i]: which of `gpus` has index i */
    struct node_fault faults[NODE_MAX_FAULTS];
    struct node_xid xids[NODE_MAX_XIDS];
    struct node_call_fault calls[NODE_MAX_CALLS];
    struct node_gpu gpus[NODE_MAX_GPUS];
    struct node_bank banks[2];
};

#endif
