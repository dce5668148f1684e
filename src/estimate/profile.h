/* A machine profile: what GPU, driver and libraries add to what the allocator reserves. `carma calibrate` writes one. */
#ifndef CARMA_ESTIMATE_PROFILE_H
#define CARMA_ESTIMATE_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct machine_profile {
    char name[64];      /* "a100-40g-thesis" */
    char gpu[64];       /* as NVML names it */
    char source[96];    /* where its figures are from */
    int64_t context_bytes; /* CUDA context with the framework's kernels, after one tiny step without cuDNN */
    int64_t cudnn_bytes;   /* more, once a convolution has run */
    int64_t cublas_workspace_bytes; /* allocated through the caching allocator at the first matrix product; Ampere: 8.125 MiB */
    int64_t memory_bytes;  /* of the GPU that a job can have, context included */
    int32_t sm_count, sm_clock_mhz; /* maximum clock */
    int32_t bandwidth_gbps; /* of memory, GB/s */
};

/* The built-in ones: the GPU models of data/profiles.ini. NULL: none of that name. A name matches by its own name or
 * the GPU's, without regard to case. */
const struct machine_profile *machine_profile_find(const char *name);
const struct machine_profile *machine_profile_builtin(size_t index); /* NULL past the last */

/* `key = value` lines; unknown keys and values out of range: -EINVAL, "FILE:LINE: ...". */
int machine_profile_read(struct machine_profile *profile, const char *name, const char *text, size_t length, struct error *err);

#endif
