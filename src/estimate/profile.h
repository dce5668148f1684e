/* A machine profile: the memory that GPU, driver and libraries add to the allocator's reserve. `carma calibrate`
 * measures one; the built-in ones come from data sheets and, for the A100, from published runs. Format:
 * docs/formats/profile.md. */
#ifndef CARMA_ESTIMATE_PROFILE_H
#define CARMA_ESTIMATE_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MACHINE_PROFILE_DEFAULT   "a100-40g-thesis"
#define MACHINE_PROFILE_MAX_BYTES ((size_t)64 << 10)

struct machine_profile {
    char name[64];                  /* "a100-40g-thesis" */
    char gpu[64];                   /* as NVML names it */
    char source[160];               /* where its figures are from; says which are assumed */
    int64_t context_bytes;          /* CUDA context with the framework's kernels, after one tiny step without cuDNN */
    int64_t cudnn_bytes;            /* more, once a convolution has run */
    int64_t cublas_workspace_bytes; /* allocated through the caching allocator at the first matrix product: PyTorch
                                       takes 8.125 MiB, 32 MiB from Hopper on */
    int64_t memory_bytes;           /* of the GPU that a job can have, context included */
    int32_t sm_count, sm_clock_mhz; /* maximum clock */
    int32_t bandwidth_gbps;         /* of memory, GB/s */
};

/* The built-in ones. NULL: none of that name. A name matches by its own name or the GPU's (with or without "NVIDIA "),
 * without regard to case. Where several have the GPU, the first in the table's order matches. */
const struct machine_profile *machine_profile_find(const char *name);
const struct machine_profile *machine_profile_builtin(size_t index); /* NULL past the last; [0] is the default */

/* -EINVAL: "FILE:LINE: ..." for an unknown or repeated key, a value out of range, a missing key. `name` is the file's
 * name in messages; where the file sets no `name`, the profile's is `name` without folders and ending. A `gpu` that is
 * built in gives SMs, clock, bandwidth and cuBLAS's workspace where the file has none. */
int machine_profile_read(struct machine_profile *profile, const char *name, const char *text, size_t length,
                         struct error *err);

#endif
