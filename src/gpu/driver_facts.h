/* The output of `carma-monitor --inspect` (gpu/nvml/inspect.h), read back. It comes from a process in which a vendor's
 * driver runs: nothing of it is trusted. */
#ifndef CARMA_GPU_DRIVER_FACTS_H
#define CARMA_GPU_DRIVER_FACTS_H

#include <stdint.h>

#include "gpu/reading.h"

struct driver_gpu_facts {
    char name[GPU_NAME_SIZE];
    char uuid[GPU_UUID_SIZE];
    char failed[128];    /* why the driver has no more to say of it; "" */
    int64_t persistence; /* -1: not told; likewise below */
    int64_t compute_mode;
    int64_t ecc;
};

struct driver_facts {
    char library[256], no_library[512], init_text[128], driver[80], nvml[80];
    int64_t init;  /* NVML's code; -1: it did not say */
    int64_t gpus;  /* as NVML counts them, any number; -1: not told */
    int64_t asked; /* the last that was touched, below GPU_MAX_DEVICES; -1: none */
    struct driver_gpu_facts gpu[GPU_MAX_DEVICES];
};

/* Takes the whole lines of the text (which it cuts up; may be NULL); unknown facts are passed over. */
void driver_facts_read(struct driver_facts *facts, char *text);

#endif
