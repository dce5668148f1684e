/* The state, for the core's own files. */
#ifndef CARMA_CORE_CORE_INTERNAL_H
#define CARMA_CORE_CORE_INTERNAL_H

#include "core/common_wants.h"
#include "core/company.h"
#include "core/core.h"
#include "core/guess/kin.h"
#include "core/guess/prior.h"
#include "core/learn.h"
#include "core/ledger.h"
#include "core/policy/policy.h"
#include "core/user.h"
#include "core/waiting/alike.h"
#include "core/waiting/queue.h"

/* How many stand before the waiting job that was asked about last. */
struct core_asked {
    uint64_t applied; /* core.applied then */
    const struct job *job;
    uint64_t ahead;
};

struct core {
    struct core_config config;
    const struct policy *policy; /* of config.policy */
    struct gpu **gpus;           /* owned, each by itself: they stand in a list */
    uint32_t gpu_count;
    int64_t largest_gpu_bytes; /* of their totals */
    size_t gpu_capacity;
    struct job *jobs;           /* uthash by id, owned: all that have not ended */
    struct common_wants *wants; /* the jobs' */
    uint32_t profile_count;     /* of all users */
    struct measure *measures;   /* uthash by key, owned, in the order of their latest readings */
    struct prior prior;         /* with which each user begins */
    struct user *users;         /* uthash by uid, owned: all that ever had a job */
    uint64_t last_place;        /* the largest place in the main queue that was given to a job */
    uint64_t last_arrival;      /* the largest place in a class that goes by arrival: a cache (order.c) */
    struct queue waiting;       /* QUEUED, in the order of turns */
    struct queue held;          /* HELD, the same */
    struct queue undecided;     /* CRASHED, or STOPPING and not signalled yet */
    struct queue shrinking;     /* RUNNING with a reservation that may be shrunk, in the order of first use */
    int64_t next_decision_ns;   /* no placement before */
    uint32_t round_robin_next;
    uint64_t reserved_job;      /* the one that has GPUs reserved; 0: none */
    uint32_t settling_count;    /* of the GPUs with a settling_job */
    int64_t smallest_gpu_bytes; /* total, of the GPUs: a cache */
    uint32_t instance_count;    /* of the GPUs, those that are MIG instances: the same */
    uint32_t mps_count;         /* of the GPUs, those on which MPS serves: the same */
    bool corrections_due;       /* a job may have outgrown its reservation, or have an estimate now: a cache */
    bool restoring;             /* a snapshot is being applied: until the first record of another kind */
    int64_t decided_ns;         /* the time of the latest decision */
    /* Caches, not state: a job is examined again only when something has opened since its last examination. */
    uint64_t applied;          /* records so far */
    uint64_t activity_version; /* of pauses, estimates and settings: predictions for all GPUs are made anew */
    struct core_asked *asked;  /* owned; by itself, since looking at a const core fills it */
    uint64_t openings;
    struct gpu *last_opened;
    uint64_t searched;    /* core.openings when all waiting jobs had been looked at: those that are not unexamined */
    struct alike *alikes; /* uthash, owned */
    struct alikes_of_width *widths; /* owned array: their trees */
    uint32_t width_count;
    size_t width_capacity;
    struct room *rooms; /* owned array: of each GPU, while waiting jobs are looked at */
    size_t room_capacity;
};

/* Range of the fractions that a sample or a job may carry. */
static inline bool is_reading(int32_t permille)
{
    return permille >= -1 && permille <= 1000;
}

/* apply_gpu.c: core_apply of GPU_BACK, GPU_LOST, SAMPLE and SHARE_FAULT. */
int apply_gpu(struct core *core, const struct record *record, struct error *err);

/* Whether something may be placed already. */
bool core_decision_due(const struct core *core, int64_t now_ns);

/* A decision is a record like any other: it changes the state only by being applied. False: it does not apply. */
bool core_decided(struct core *core, struct record_list *out, const struct record *decision);

/* Places the job if it fits. False: it does not. */
bool core_place(struct core *core, struct job *job, int64_t now_ns, struct record_list *out);

struct job *core_job_by_id(const struct core *core, uint64_t id); /* NULL: there is none */
void core_free_job(struct core *core, struct job *job);           /* that is in no list any more */

/* Shared by applying records and restoring a snapshot. */
int core_apply_gpu_back(struct core *core, const struct record_gpu *record, struct error *err);
int core_apply_gpu_lost(struct core *core, const struct record_gpu *record, struct error *err);
int core_check_sample(const struct core *core, const struct record_sample *sample, struct error *err);
int core_add_job(struct core *core, const struct record *submitted, struct job **added, struct error *err);

/* Whether the predicted slowdown closes GPUs, as far as the policy predicts it. */
static inline bool core_gates_slowdown(const struct core *core)
{
    return core->policy->predicts && core->config.gate == GATE_ALL;
}

/* Why the GPU cannot take the job at now_ns beside its residents: REASON_NONE if it can. */
uint32_t gpu_verdict(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t now_ns);

/* Whether the job could have the GPU by itself, if not for its slowdown, and as if programs started there. */
bool gpu_could_take(const struct job *job, const struct gpu *gpu);

/* Whether the job would take the GPU, once that is idle. */
bool gpu_is_for(const struct core *core, const struct job *job, const struct gpu *gpu);

/* Whether the GPU is idle and has the memory that is known to be needed. */
bool gpu_fits_idle(const struct core *core, const struct job *job, const struct gpu *gpu);

/* The slowdown that the job's coming may cause on the GPU: the least bound of all concerned; 0: any. */
int32_t gpu_slowdown_bound(const struct core *core, const struct job *job, const struct gpu *gpu);

#endif
