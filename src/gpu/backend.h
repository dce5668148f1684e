/* Where readings come from, behind one small vtable, used within carma-monitor only: its calls run a vendor's code, may
 * hang, and may corrupt memory. To add a backend: another `const struct gpu_backend`, chosen in carma_monitor.c. */
#ifndef CARMA_GPU_BACKEND_H
#define CARMA_GPU_BACKEND_H

#include "base/error.h"
#include "gpu/reading.h"

#define GPU_NVML_LIBRARY_ENV "CARMA_NVML_LIBRARY" /* names NVML's library, where the options do not */

struct gpu_backend_options {
    const char *library; /* the shared object to load; NULL: the backend's own choice */
    bool without_gpm;    /* never asks for GPM's metrics, nor pays for them */
    uint64_t skip;       /* a bit for each index of a GPU not to be touched: its reading has an error and no uuid */

    /* Or NULL. Called before each GPU is touched, with its index, and after the last with -1: it shows where this
     * process hangs. */
    void (*touch)(void *user, int index);
    void *user;
};

struct gpu_backend {
    /* 0 and *state (for close), or a negative errno. */
    int (*open)(const struct gpu_backend_options *options, void **state, struct error *err);

    /* Fills *reading, at_ns being the node time at which it began. Failures are reported GPU by GPU, by `error` and by
     * the bits that are absent from `valid`. A GPU with an unreadable identity has an empty uuid. 0, or a negative
     * errno where nothing can be read any more (the driver was unloaded): the program ends then, to be started anew. */
    int (*read)(void *state, struct gpu_node_reading *reading, struct error *err);

    void (*close)(void *state); /* takes NULL */
};

#endif
