/* An administrator's decisions about scheduling; part of the core's state (record RECONFIGURED). */
#ifndef CARMA_CORE_CONFIG_H
#define CARMA_CORE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define CORE_POLICY_NAME_SIZE 32
#define CORE_MAX_WITHOUT_GPU  32
#define CORE_MAX_REQUEUES     100 /* by default: with a limit of a day, a quarter of a year */

/* How free memory is counted. MONITOR (the thesis): the readings of the last window. RESERVE: total - unmanaged - sum
 * of max(reservation, observed) - margin, so that launches never race while a job still loads. */
enum memory_view { MEMORY_MONITOR, MEMORY_RESERVE };

/* Which statistic of the monitor's window a sample's activity is. RISK is the weighted sum of the thesis's public code,
 * 0.2 mean + 0.2 median + 0.3 p95 + 0.1 p50 + 0.2 EMA. Drivers compute it; the core only records which one it was. */
enum window_statistic { STATISTIC_MEAN, STATISTIC_MEDIAN, STATISTIC_P95, STATISTIC_EMA, STATISTIC_RISK };

/* How a job that ran out of GPU memory is retried. EXCLUSIVE (thesis 6.2.3): on idle GPUs. STEP (thesis 7.2): by
 * the policy, with a request 5 GiB above the memory that it could have had. INFORMED: by the policy, with its observed
 * memory plus the size of the allocation that failed. The last two end with an idle GPU too. */
enum oom_retry_mode { OOM_RETRY_EXCLUSIVE, OOM_RETRY_STEP, OOM_RETRY_INFORMED };

/* Whose jobs go first. FAIR: those of the user who has had the least of the GPUs lately. FIFO: the oldest. */
enum order { ORDER_FIFO, ORDER_FAIR };

/* The reasons that close a GPU to a job. ALL: all known figures. MEMORY: its memory alone, so that SM activity and
 * slowdown only rank GPUs. For jobs that a cluster's scheduler has counted by memory, and would only send again. */
enum gate { GATE_ALL, GATE_MEMORY };

/* Limits of one user at a time; 0: no limit. */
struct core_limits {
    uint32_t max_queued;      /* unfinished jobs; drivers refuse jobs beyond it */
    uint32_t max_running;     /* jobs that have GPUs */
    uint32_t max_gpus;        /* that these have; one that is shared counts for each */
    int64_t max_memory_bytes; /* of GPUs, that these have reserved in all */
    uint32_t
        max_retries; /* in an hour, of jobs that are put before the main queue; those beyond go back to their place */
};

/* What the node has beside GPUs. */
struct core_resources {
#define RESOURCE(member, name, code) int64_t member;
#include "core/resources.def"
};

/* A part of one: the sum over all jobs is a number, too. */
static inline bool is_part_of_resource(int64_t part)
{
    return part >= 0 && part <= INT64_C(1) << 50;
}

struct core_config {
    char policy[CORE_POLICY_NAME_SIZE];
    uint32_t memory_view; /* enum memory_view */
    int64_t floor_bytes; /* free memory that a GPU with residents needs for a job without a reservation (thesis 6.2.2: 5
                            GB) */
    int64_t margin_bytes;       /* kept free beyond a reservation */
    int32_t smact_cap_permille; /* a GPU with residents must not be busier (thesis 6.2.2: 800) */
    int32_t smocc_cap_permille; /* 1000: any */
    int32_t dram_cap_permille;  /* 1000: any */
    bool caps_together; /* true: only SM activity together with one of the other two closes a GPU (the 2025 code) */
    uint32_t statistic; /* enum window_statistic */
    int64_t window_ns;  /* of the samples; also how long residents must be the same to learn from one */
    int64_t decide_period_ns;   /* at least this long between two placements */
    int64_t collocate_extra_ns; /* and this much longer after one beside residents */
    bool paced;                 /* decisions that place nothing take their period too (the thesis's loop) */
    int64_t settle_ns;  /* a GPU stays closed until a new job's memory has been observed for this long (monitor view;
                           after a retried job alone on it, both views) */
    uint32_t oom_retry; /* enum oom_retry_mode */
    uint32_t
        max_retries; /* out-of-memory crashes after which a job is given up; and, counted apart, faults not its own */
    uint32_t max_without_gpu; /* jobs without a GPU that run at a time; 0: any */
    uint32_t max_requeues;    /* time limits that a job may reach which is requeued after them */
    bool requeue_lost;        /* lost jobs are retried as if all had asked for it */
    struct core_limits per_user;
    struct core_resources most; /* that all jobs may hold at a time; 0: any */
    uint32_t max_jobs_per_gpu;
    bool mps_multiuser;            /* an MPS server takes clients of several users */
    uint32_t mps_domain;           /* enum share_domain */
    uint32_t mps_threads_percent;  /* of a GPU's threads, for each client of an MPS server at most; 100: all; 0: auto
                                      (slowdown_threads) */
    uint32_t mps_max_clients;      /* residents of a GPU that is shared by MPS */
    uint32_t gate;                 /* enum gate */
    uint32_t order;                /* enum order */
    uint32_t backfill;             /* whether jobs behind a blocked head are looked at; 0: no (FIFO) */
    int64_t starvation_timeout_ns; /* with backfill: GPUs are reserved for a head that has waited for so long */
    int32_t max_slowdown_permille; /* predicted slowdown that a placement may cause, e.g. 2500; 0: any */
    uint32_t memory_fence; /* 1: jobs under MPS are given no more memory than core/need/fence.h says; 0: as much as
                              there is */
    bool learn;            /* reservations and activities from earlier runs of the same workload */
    int32_t prior_quantile_permille; /* of the distribution that a job of unknown need goes by (core/guess/prior.h); 0:
                                        it gets whole GPUs */
    int64_t shrink_after_ns; /* time after the memory appeared until a reservation shrinks to it and a tenth more (a
                                quarter, where there was no request); 0: never */
};

/* The defaults: MAGM with the thesis's preconditions on reservations. */
void core_config_default(struct core_config *config);

const char *memory_view_name(uint32_t view); /* "monitor", "reserve" */

#endif
