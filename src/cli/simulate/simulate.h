/* carma simulate: its runs, and their reports. */
#ifndef CARMA_CLI_SIMULATE_SIMULATE_H
#define CARMA_CLI_SIMULATE_SIMULATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "config/config.h"
#include "estimate/estimate.h"
#include "sim/sim.h"
#include "trace/trace.h"

/* ---- The jobs (simulate/jobs.c) ---- */

/* Where a job's memory request comes from: exactly its need. Else a recorded figure, where there is one; else an
 * estimator's answer for the workload's summary, where there is one. */
struct simulate_estimator {
    bool oracle;
    int column;                        /* enum workload_recorded; -1: none */
    const struct estimator *estimator; /* NULL: none */
};

extern const struct simulate_estimator simulate_estimator_none;

/* "oracle", "declared", "history" (none: the core learns), "recorded:COLUMN", or the name of an estimator. */
int simulate_estimator_parse(const char *text, struct simulate_estimator *estimator, struct error *err);

/* The figure that a carmad with this setting would use. */
struct simulate_estimator simulate_estimator_of(enum estimator_choice choice);

struct simulate_jobs {
    struct sim_job *items; /* owned */
    size_t count;
    struct simulate_origin {
        const struct workload *workload; /* borrowed; NULL: a daemon's job */
        int64_t request_bytes;           /* the job's own request */
        uint32_t request_source;
        int32_t expected_permille; /* as sim_job's */
        uint64_t line;             /* in the trace; of a daemon's job, its number */
    } * origins;                   /* owned, one per job */
    struct sim_use *uses;          /* owned: WORKLOAD_PROFILED_GPUS of each workload */
    struct workloads workloads;
    struct trace trace;
    struct past *past;    /* owned; NULL: not from a daemon's store */
    char *workloads_path; /* owned */
    uint32_t gpu_count;   /* of the node that the jobs ran on; 0: not said */
    int64_t gpu_bytes;
};

struct simulate_source {
    const char *trace;     /* a file; or a daemon's state directory */
    const char *workloads; /* NULL: the installed ones */
    const char *vc;        /* NULL: all virtual clusters */
    int64_t last_ns;       /* 0: all; else of a daemon's jobs those submitted within this time before its last record */
};

/* Reads the trace and makes jobs of it that request nothing. */
int simulate_jobs_load(struct simulate_jobs *jobs, const struct simulate_source *source, enum share_mode share,
                       const struct contention_params *contention, struct error *err);

/* Whether a node with this many GPUs could run them all. */
int simulate_jobs_check(const struct simulate_jobs *jobs, const char *path, uint32_t gpu_count, struct error *err);

void simulate_jobs_release(struct simulate_jobs *jobs);

/* The same from the state directory of a daemon (simulate/store.c); stderr names the parts left out. */
int simulate_jobs_load_store(struct simulate_jobs *jobs, const struct simulate_source *source, enum share_mode share,
                             const struct contention_params *contention, struct error *err);

/* ---- The jobs' requests (simulate/requests.c) ---- */

#define SIMULATE_SOURCES_MAX 16

/* The error of inexact requests against the jobs' needs. */
struct simulate_requests {
    size_t jobs;
    size_t requested;
    struct {
        const char *name; /* an estimator, or a recorded column */
        size_t jobs;
    } sources[SIMULATE_SOURCES_MAX];
    size_t source_count;
    size_t over, under;         /* requests of at least, and of less than, the need */
    double over_sum, under_sum; /* of request / need - 1, and of 1 - request / need */
};

/* Gives every job the request that the estimator would, for a GPU that is as the profile says. An error names a
 * summary's file and line. */
int simulate_jobs_request(struct simulate_jobs *jobs, const struct simulate_estimator *estimator,
                          const struct machine_profile *profile, int32_t quantile_permille,
                          struct simulate_requests *requests, struct error *err);

json_t *
simulate_requests_to_json(const struct simulate_requests *requests); /* null where there was nothing to compare */
void simulate_requests_format(const struct simulate_requests *requests, struct strbuf *out); /* a line; or nothing */

/* ---- The command line (simulate/options.c) ---- */

#define SIMULATE_POLICIES_MAX 32

struct simulate_options {
    struct simulate_source source;
    const char *profile;
    int64_t gpus;             /* 0: the profile's */
    int64_t gpu_memory_bytes; /* 0: the profile's */
    const char *policy;       /* NAME[@ESTIMATOR][/KEY=VALUE...] */
    char **settings;          /* owned: "key=value", applied in their order on top of each policy's own */
    size_t setting_count, setting_capacity;
    enum share_mode share;
    uint32_t mps_domain; /* enum share_domain */
    bool share_given;    /* else it is as the policy's preset has it, where that does */
    int64_t mig_slices;  /* 0: whole GPUs */
    struct simulate_estimator estimator;
    bool estimator_given;
    int64_t seeds;
    int64_t first_seed;
    double jitter;
    struct contention_params contention;
    bool checkpoints;
    char *compare; /* owned: the list, cut at its commas */
    const char *policies[SIMULATE_POLICIES_MAX];
    size_t policy_count; /* 0: there is nothing to compare */
    const char *timeline;
    int64_t steps; /* of the time line in JSON; 0: none */
    const char *replay;
    bool json;
};

/* NAME[@ESTIMATOR][/KEY=VALUE...]: sets the policy in *config, and *estimator where one is named. */
int simulate_set_policy(const char *wanted, struct config *config, struct simulate_estimator *estimator,
                        struct error *err);

/* The settings that stand with a policy. config->share.mode (and core.mps_domain) is then how jobs share a GPU, where
 * the settings say so. SHARE_ANY is put there before, to see that. */
int simulate_set_own(const char *wanted, struct config *config, struct error *err);

/* ---- Results (simulate/report.c) ---- */

enum simulate_figure {
    SIM_MAKESPAN,
    SIM_WAIT,
    SIM_RUN_TIME,
    SIM_JCT,
    SIM_JCT_P95,
    SIM_WAIT_P95,
    SIM_ENERGY,
    SIM_HELD,
    SIM_OOM,
    SIM_MOVED,
    SIM_SHARING_MEAN,
    SIM_SHARING_P95,
    SIM_SHARING_MAX,
    SIM_BOUNDED_MEAN,
    SIM_BOUNDED_P95,
    SIM_BOUNDED_MAX,
    SIM_JAIN,
    SIM_PREDICTED_MAX,
    SIM_ACTIVITY,
    SIM_REFUSED,
    SIM_GIVEN_UP,
    SIM_NEVER_ENDED,
    SIM_FIGURE_COUNT
};

/* One policy's runs. Figures are NAN where a run has none. */
struct simulate_outcome {
    const char *policy; /* borrowed */
    char share[24];     /* how its jobs share a GPU */
    size_t seeds;
    size_t jobs;
    size_t users;     /* that had jobs which completed */
    json_t *timeline; /* owned; NULL: not asked for */
    struct simulate_requests requests;
    bool incomplete;                   /* some job of some run did not complete: nothing is compared with it */
    char never_ended_why[REASON_TEXT]; /* of one that never ended; else "" */
    double *values[SIM_FIGURE_COUNT];  /* owned: of each seed */
};

void simulate_outcome_init(struct simulate_outcome *outcome, const char *policy, size_t seeds);
void simulate_outcome_add(struct simulate_outcome *outcome, size_t seed, const struct sim_result *result);
void simulate_outcome_release(struct simulate_outcome *outcome);
double simulate_mean(const struct simulate_outcome *outcome, enum simulate_figure figure);
double simulate_sd(const struct simulate_outcome *outcome, enum simulate_figure figure); /* sample s.d.; 0 of one */

json_t *simulate_to_json(const struct simulate_outcome *outcomes, size_t count);
void simulate_format(const struct simulate_outcome *outcomes, size_t count, int width, bool colour, struct strbuf *out);

/* ---- The GPUs over time (simulate/timeline.c) ---- */

struct timeline_point {
    int64_t at_ns;
    uint32_t gpu;
    int64_t used_bytes;
    double activity;
    double power_w;
    size_t job_first, job_count; /* in timeline.jobs */
};

/* Collects the states that an observer of a simulation is shown; changes within one turn are one point. */
struct timeline {
    struct timeline_point *points; /* owned */
    size_t count, capacity;
    uint64_t *jobs; /* owned */
    size_t job_count, job_capacity;
    size_t *last; /* owned: per GPU, its latest point, plus one */
    uint32_t gpu_count;
    int64_t begin_ns, end_ns;
};

void timeline_init(struct timeline *timeline, uint32_t gpu_count);
void timeline_release(struct timeline *timeline);
void timeline_add(void *timeline, int64_t at_ns, const struct sim_gpu_view *view); /* as sim_observer.on_gpu */

/* Means over that many equal steps, from `begin_ns` to the end: format docs/formats/simulate.md. A new reference. */
json_t *timeline_to_json(const struct timeline *timeline, int64_t begin_ns, double idle_w, size_t steps);

/* Format: docs/formats/simulate.md. */
int timeline_write_csv(const struct timeline *timeline, const char *path, struct error *err);

/* ---- Replay (simulate/replay.c) ---- */

/* Decides the store in the directory afresh; prints the verdict. Returns an exit status. */
int simulate_replay(const char *directory);

#endif
