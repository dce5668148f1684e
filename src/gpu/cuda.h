/* A GPU's properties, and the memory of an empty CUDA context on it. They go through the CUDA driver's library, loaded
 * by dlopen: the one that the environment variable CARMA_CUDA_LIBRARY names, else libcuda.so.1. For `carma calibrate`,
 * which measures once; the daemon never makes a context. Written against NVIDIA's public driver API reference;
 * declarations are our own. */
#ifndef CARMA_GPU_CUDA_H
#define CARMA_GPU_CUDA_H

#include <stdint.h>

#include "base/error.h"

#define GPU_CUDA_LIBRARY_ENV "CARMA_CUDA_LIBRARY"

struct cuda_gpu {
    char name[96];
    char uuid[48];                  /* "GPU-...", as NVML has it; "" where the driver does not say */
    int32_t sm_count, sm_clock_mhz; /* maximum clock; 0 = not said */
    int32_t bandwidth_gbps;         /* of memory, from its maximum clock and its bus; 0 = not said */
};

struct cuda; /* the library, with one GPU's primary context while that is taken */

/* -ENOENT: no library; -ENODEV: it finds no GPU; -ENOSYS: it is another library;
 * -EIO: the driver failed. One line each. */
int cuda_open(struct cuda **cuda, struct error *err);
void cuda_close(struct cuda *cuda); /* takes NULL; gives the context back */

/* Of CUDA's first GPU: CUDA_VISIBLE_DEVICES chooses. */
int cuda_gpu_facts(const struct cuda *cuda, struct cuda_gpu *gpu, struct error *err);

/* Makes its primary context. *free_bytes: memory that the context's owner could still allocate then. */
int cuda_context_take(struct cuda *cuda, int64_t *free_bytes, struct error *err);
void cuda_context_give(struct cuda *cuda); /* where it was taken */

#endif
