/* The second driver of the core: the world of a node, simulated. The core decides as it does in carmad; the jobs'
 * progress is computed with `contention` as the truth, on a virtual clock. No input or output, no global state.
 *
 * A job is launched, loads for load_ns holding nothing and using no SM, and then trains at the rate that contention
 * leaves it. On several GPUs that is the rate of its slowest side. After climb_ns more its memory is there; it crashes
 * where the GPUs lack some of it (docs/simulator.md). Units: bytes, nanoseconds of virtual time, parts of one. */
#ifndef CARMA_SIM_SIM_H
#define CARMA_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/stats/measures.h"
#include "contention/contention.h"
#include "core/config.h"
#include "core/reason.h"
#include "core/record.h"

/* A job's effect on one of its GPUs. */
struct sim_use {
    double activity;        /* SM activity when alone, 0 to 1 */
    double occupancy;       /* SM occupancy, the same */
    double dram;            /* DRAM activity, the same */
    int64_t resident_bytes; /* memory that it holds while it trains */
    int64_t need_bytes;     /* memory that must be free once for it not to run out; at least resident_bytes */
};

struct sim_job {
    int64_t arrival_ns; /* never less than the job before */
    int64_t work_ns;    /* training time alone on its GPUs, without loading */
    uint32_t gpus;
    uint32_t use_count;            /* of `uses`, at least 1: GPUs beyond the last are used like it */
    const struct sim_use *uses;    /* borrowed */
    const char *workload;          /* borrowed; the same text means the same workload; "" where there is none to name */
    int64_t request_bytes;         /* per GPU; -1: not known */
    uint32_t request_source;       /* enum memory_source */
    int32_t expected_permille;     /* SM activity that is estimated for it; 0: not known */
    int32_t max_slowdown_permille; /* 0: the configuration's */
    bool exclusive;
    uint32_t uid;
    uint32_t share; /* enum share_mode: SHARE_ANY, or the only way in which it may share */
    /* as in struct record_submitted; of the GPUs' types nothing counts: they are all alike here */
    uint64_t excluded_gpus;
    uint32_t
        user_share; /* of the GPUs, its user's from then on; 0: as before, which is 1 at first. With it, his group: */
    char group[RECORD_GROUP_SIZE];
    uint32_t group_share;
};

struct sim_node {
    uint32_t gpu_count;
    int64_t total_bytes; /* that jobs can use, of each GPU */
    double idle_w;
    double full_w;
};

struct sim_options {
    struct core_config core;
    enum share_mode share; /* how all GPUs are configured, SHARE_ANY apart */
    uint32_t mig_slices;   /* 0: GPUs are whole; else each is cut into instances of this many of 7 slices: 1, 2, 3, 4,
                              7 */
    struct contention_params contention;
    int64_t load_ns;
    int64_t climb_ns;
    int64_t sample_period_ns; /* the window and its statistic are settings of the core */
    bool checkpoints;         /* jobs leave their GPUs with a checkpoint when told to */
    double jitter;            /* standard deviation of the normal factor on each job's work */
    uint64_t seed;            /* of the jitter */
};

/* The daemon's defaults, jobs that share by MPS, 12 s and 15 s, no jitter. */
void sim_options_default(struct sim_options *options);

/* The result of a job. */
struct sim_row {
    int64_t first_launch_ns; /* -1: it was never launched */
    int64_t last_launch_ns;
    int64_t ended_ns; /* -1: it never ended */
    int64_t work_ns;  /* with jitter */
    double done_ns;   /* of it, by its last checkpoint */
    int64_t ran_ns;   /* in launches that ended with one */
    uint32_t moved;   /* these */
    uint32_t crashes;
    uint32_t state; /* enum job_state, ended; JOB_QUEUED: it would wait for ever */
};

struct sim_times { /* NAN where there are no such jobs */
    double mean_s;
    double p95_s;
};

/* As `carma play` reports them (thesis 6.3.4): times are of the jobs that were launched and ended, from the first
 * submission on. */
struct sim_result {
    size_t jobs;
    size_t completed;
    size_t refused;
    size_t given_up;                   /* out of GPU memory too often */
    size_t never_ended;                /* they would wait for ever */
    char never_ended_why[REASON_TEXT]; /* of the first of these */
    double makespan_s;                 /* last end - first submission */
    struct sim_times wait;             /* first launch - submission */
    struct sim_times execution;        /* end - last launch */
    struct sim_times completion;       /* end - submission */
    double energy_j;                   /* of all GPUs over the makespan */
    double held_s;                     /* GPUs times how long they held at least one job */
    uint64_t oom;                      /* launches that ran out of memory */
    uint64_t moved;                    /* launches that were moved off */
    struct measures measures;          /* of the jobs that completed; run time alone is the work, without loading */
    double predicted_slowdown_max;     /* of the core's predictions at any placement */
    double activity_mean;              /* SM activity, of a GPU, over the makespan */
    double memory_mean_bytes;          /* in use, of a GPU, over the makespan */
    uint64_t inputs;                   /* records fed to the core */
    uint64_t decisions;
    struct sim_row *rows; /* owned; one per job */
};

void sim_result_release(struct sim_result *result);

/* A GPU's activity from some time on. */
struct sim_gpu_view {
    uint32_t gpu;
    int64_t used_bytes;
    double activity; /* 0 to 1, of the whole GPU */
    double power_w;
    uint32_t resident_count;
    const uint64_t *residents; /* ids of jobs; job i of the trace has id i + 1 */
};

/* Any function may be NULL. */
struct sim_observer {
    void *user;
    void (*on_record)(void *user, const struct record *record); /* inputs and decisions, in their order */
    void (*on_gpu)(void *user, int64_t at_ns, const struct sim_gpu_view *view); /* something about it has changed */
    void (*on_ended)(void *user, size_t ended, size_t count);                   /* a job has: progress */
};

/* Runs the jobs until all have ended, or those that are left would wait for ever. observer may be NULL. -EINVAL: names
 * the wrong job or option and the fault. *result is filled only on success. */
int sim_run(const struct sim_job *jobs, size_t count, const struct sim_node *node, const struct sim_options *options,
            const struct sim_observer *observer, struct sim_result *result, struct error *err);

/* Memory of one MIG instance of this many slices on a GPU with total_bytes; 0: no such instance exists. */
int64_t sim_mig_bytes(int64_t total_bytes, uint32_t slices);
uint32_t sim_mig_instances(uint32_t slices); /* per GPU; 0: no such instance exists */

#endif
