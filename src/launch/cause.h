/* Why a job failed: one decision from all that is known of its end. Pure.
 *
 * The shepherd decides with its own view; the daemon, which also sees the GPUs and the MPS domains, decides anew. */
#ifndef CARMA_LAUNCH_CAUSE_H
#define CARMA_LAUNCH_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"
#include "launch/classify.h"

/* A library that could not be initialised is assumed to have lacked memory where less than this was free, or than a
 * quarter of its fence (short_bytes). A context with the handles and workspaces of cuBLAS and cuDNN takes some hundred
 * MiB; a convolution's workspace may take as much as its tensors. */
#define CAUSE_SHORT_BYTES (INT64_C(512) << 20)

/* Zero-initialised except for members that are -1 when unknown: nothing is known. */
struct cause_evidence {
    int32_t exit_status; /* of the main process; -1: ended by `signal` */
    int32_t signal;      /* 0: none */
    bool stopped;        /* carma had asked it to end */
    bool timed_out;      /* ... because its time was up */
    bool idle;           /* ... which was its idle limit's */
    bool orphan;         /* a lease: its processes are gone without a word */
    bool expired;        /* a lease: nobody came to use it */
    bool warned;         /* it was given the signal that comes before its time is up */
    bool requeue;        /* it asks to be started again after its time limit */
    bool host_oom_kill;  /* processes in its control group that the kernel killed because memory ran out while it ran */
    bool host_oom_own;   /* ... and that group is its alone */
    uint32_t output;     /* enum output_kind */
    int64_t free_bytes; /* the least observed free memory on one of its GPUs shortly before its end; -1: not observed */
    int64_t short_bytes; /* what is too little of it; 0: CAUSE_SHORT_BYTES */
    uint32_t xid;        /* reported by one of its GPUs shortly before its end: a GPU's own failure if any; 0: none */
    bool gpu_lost;       /* one of its GPUs is gone */
    bool mps;            /* its processes were MPS clients */
    bool mps_fault;      /* their MPS domain faulted shortly before its end */
    bool first_fault;    /* of the clients that ended by that fault, its output is the first to tell of it */
};

enum exit_cause cause_decide(const struct cause_evidence *evidence);

#endif
