/* The ways in which jobs share a GPU. MIG is not among them: an instance is a GPU of its own. */
#ifndef CARMA_BASE_SHARE_H
#define CARMA_BASE_SHARE_H

enum share_mode {
    SHARE_ANY,       /* of a job: as its GPUs are configured; of a GPU: not configured, as SHARE_STREAMS */
    SHARE_STREAMS,   /* each process has its own context; the GPU switches between them */
    SHARE_MPS,       /* clients of one MPS server: their kernels run at the same time */
    SHARE_EXCLUSIVE, /* one job at a time */
    SHARE_MODE_COUNT
};

enum share_mode share_mode_find(const char *name); /* SHARE_MODE_COUNT: there is none of that name */
const char *share_mode_name(enum share_mode mode); /* "any", "streams", "mps", "exclusive"; "unknown" out of range */

#endif
