/* The ways in which jobs share a GPU. MIG is not among them: an instance is a GPU of its own. */
#ifndef CARMA_BASE_SHARE_H
#define CARMA_BASE_SHARE_H

#include <stdint.h>

enum share_mode {
    SHARE_ANY,        /* of a job: as its GPUs are configured; of a GPU: not configured, as SHARE_TIME_SLICE */
    SHARE_TIME_SLICE, /* each process has its own context; the GPU switches between them */
    SHARE_MPS,        /* clients of one MPS server: their kernels run at the same time */
    SHARE_EXCLUSIVE,  /* one job at a time */
    SHARE_AUTO,       /* of a GPU: a user's jobs by MPS; those of several users take turns, where that pays */
    SHARE_MODE_COUNT
};

/* Which MPS jobs are clients of one server. */
enum share_domain {
    MPS_DOMAIN_USER, /* those of a user, on all GPUs that are configured for MPS */
    MPS_DOMAIN_GPU,  /* those of a GPU, or of the GPUs of one job of several */
    MPS_DOMAIN_NODE, /* all jobs, of every user: the simulator's, as the thesis ran MPS */
    MPS_DOMAIN_COUNT
};

enum share_mode share_mode_find(const char *name); /* SHARE_MODE_COUNT: no mode has this name */
const char *share_mode_name(enum share_mode mode); /* "any", "time-slice", "mps", ...; "unknown" out of range */

/* The same with the domain of MPS: "mps", "mps:gpu" and "mps:node" name one, other modes leave *domain as it is. */
enum share_mode share_name_find(const char *name, uint32_t *domain);
const char *share_name(enum share_mode mode, uint32_t domain);

#endif
