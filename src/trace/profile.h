/* Node profiles: a server and its GPUs, for the virtual node and for the simulator. Files: data/nodes/NAME.ini,
 * installed as share/carma/nodes/NAME.ini (docs/vnode.md). */
#ifndef CARMA_TRACE_PROFILE_H
#define CARMA_TRACE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PROFILE_MAX_GPUS      16
#define PROFILE_MAX_INSTANCES 7

/* All GPUs of a node are alike. */
struct node_profile {
    char name[48];
    uint32_t gpu_count;
    char driver_version[32];
    int32_t cuda_version; /* 1000 * major + 10 * minor */
    char gpu_name[96];
    int64_t total_bytes;    /* of a GPU, as NVML shows it */
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
    uint32_t pci_device_id;
    uint32_t pcie_generation;
    bool gpm;          /* NVML answers GPM's queries; yes where it is not said */
    bool unified;      /* its memory is the host's, of which the host itself uses `reserved_bytes` */
    uint32_t mig_gpus; /* this many GPUs, the first ones, are in MIG mode, with these instances each; 0 where not
                          said */
    uint32_t instance_count;
    struct profile_instance {
        char name[16];   /* NVIDIA's: "3g.20gb" */
        uint32_t slices; /* of 7 */
        int64_t bytes;   /* memory that jobs can use: the number of eighths of the GPU's that its name's GB come nearest
                            to */
    } instances[PROFILE_MAX_INSTANCES];
};

/* Reads a profile by its name or, where there is a slash or a .ini in it, its path. Errors name file and line. */
int node_profile_read(const char *name, struct node_profile *profile, struct error *err);

#endif
