/* Where readings come from, behind one small vtable, used within carma-monitor only: its calls run a vendor's code, may
 * hang, and may corrupt memory. To add a backend: another `const struct gpu_backend`, chosen in carma_monitor.c. */
#ifndef CARMA_GPU_BACKEND_H
#define CARMA_GPU_BACKEND_H

#include "base/error.h"
#include "gpu/reading.h"

struct gpu_backend {
    /* `library`: the shared object to load; NULL: the backend's own choice. 0 and *state (for close), or a negative
     * errno. */
    int (*open)(const char *library, void **state, struct error *err);

    /* Fills *reading, at_ns being the node time at which it began. What fails is said GPU by GPU, by `error` and by
     * the bits that are absent from `valid`; a GPU whose identity cannot be read has an empty uuid. 0, or a negative
     * errno where nothing can be read any more (the driver was unloaded): the program ends then, to be started anew. */
    int (*read)(void *state, struct gpu_node_reading *reading, struct error *err);

    void (*close)(void *state); /* takes NULL */
};

#endif
