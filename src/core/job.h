/* A job and its life. Every change of state is declared in job.c; core_apply refuses any other. */
#ifndef CARMA_CORE_JOB_H
#define CARMA_CORE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

enum job_state {
    JOB_HELD,     /* waits for a release */
    JOB_QUEUED,   /* waits for GPUs (job.recovery: in the recovery queue) */
    JOB_PLACED,   /* has GPUs, is being started */
    JOB_RUNNING,  /* its process tree runs */
    JOB_STOPPING, /* was cancelled while it had GPUs: is being stopped */
    JOB_CRASHED,  /* ran out of GPU memory, or lost its shepherd: to be decided on at once */
    /* ended: */
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_GPU_OOM, /* ran out of GPU memory once too often */
    JOB_CANCELLED,
    JOB_LOST,
    JOB_REFUSED,
    JOB_STATE_COUNT
};

const char *job_state_name(uint32_t state);   /* "QUEUED", ... */
const char *job_state_letter(uint32_t state); /* as squeue has them: "PD", "R", "CD", ... (docs/formats/cli.md) */
bool job_state_ended(uint32_t state);
bool job_transition_allowed(uint32_t from, uint32_t to);

struct job_placement {
    uint32_t gpu;
    int64_t observed_bytes; /* the most seen in this run; 0 until first use */
};

struct job {
    uint64_t id;
    uint32_t state;
    struct record_submitted wants;
    int64_t submitted_ns;
    int64_t placed_ns;       /* of the last placement; 0: none yet */
    bool recovery;           /* QUEUED: in the recovery queue. PLACED and RUNNING: came from it */
    bool signalled;          /* STOPPING: the signal was decided */
    uint32_t crashes;        /* by GPU memory */
    uint32_t losses;         /* by a dead shepherd */
    uint32_t crash_cause;    /* CRASHED: RECORD_EXITED or RECORD_LOST */
    int64_t claim_bytes;     /* per GPU; while placed: as booked */
    uint32_t placement_count; /* GPUs held now */
    struct job_placement placements[RECORD_MAX_GPUS];
    struct job *previous; /* in its queue */
    struct job *next;
};

#endif
