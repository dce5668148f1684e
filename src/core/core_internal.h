/* The state, for the core's own files. */
#ifndef CARMA_CORE_CORE_INTERNAL_H
#define CARMA_CORE_CORE_INTERNAL_H

#include "core/core.h"
#include "core/ledger.h"
#include "core/policy/policy.h"
#include "core/queue.h"

struct core {
    struct core_config config;
    const struct policy *policy; /* of config.policy */
    struct gpu *gpus;            /* owned */
    uint32_t gpu_count;
    size_t gpu_capacity;
    struct job *jobs;         /* uthash by id, owned: all that have not ended */
    struct queue waiting;     /* QUEUED, in the order of ids */
    struct queue recovering;  /* QUEUED after a crash, in the order of crashes */
    struct queue held;        /* HELD */
    struct queue undecided;   /* CRASHED, or STOPPING and not signalled yet */
    int64_t next_decision_ns; /* no placement before */
    uint32_t round_robin_next;
};

/* The job that is to be placed next, or NULL. */
const struct job *core_head(const struct core *core);

/* Whether `job`, the head, wants GPUs without residents. */
bool job_wants_idle(const struct core *core, const struct job *job);

/* Free memory that a GPU must have to take the job beside others. */
int64_t job_needed_bytes(const struct core *core, const struct job *job);

/* Why the GPU cannot take the head at now_ns beside its residents: REASON_NONE if it can. */
uint32_t gpu_verdict(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t now_ns);

/* Whether the GPU is idle and has the memory that is known to be needed. */
bool gpu_fits_idle(const struct job *job, const struct gpu *gpu);

#endif
