/* A random world that drives the core: it launches placed jobs, observes memory, ends jobs in every way, restarts. Its
 * knowledge of each job is kept without asking the core, so that promises.h can compare one with the other. */
#ifndef CARMA_TESTS_WORLD_H
#define CARMA_TESTS_WORLD_H

#include <inttypes.h>
#include <stdbool.h>

#include "base/units.h"
#include "core/core.h"
#include "core/state.h"
#include "random.h"

#define MAX_JOBS       4096
#define DEPENDS_MOST   3
#define MAX_ALLOTMENTS 1024

/* The world's knowledge of a job, kept without asking the core. */
struct world_job {
    bool submitted;
    bool ended;
    bool running; /* holds GPUs: from its placement to its exit */
    bool asked_to_stop;
    bool asked_to_wait_again; /* it was requeued, and not cancelled since */
    bool runs_now;            /* it was said so */
    bool suspended;
    uint32_t suspended_by;
    uint32_t runs; /* placements, each matched by one end */
    uint32_t gpu_count;
    uint32_t gpus[RECORD_MAX_GPUS];
    uint32_t share; /* how it uses them */
    uint32_t cause; /* of its last exit */
    uint32_t timeouts;
    int64_t stray_bytes[RECORD_MAX_GPUS]; /* by number, on GPUs that it was not given */
    bool was_on[RECORD_MAX_GPUS];         /* in any run, as given or not */
    bool moves;                           /* it was told to leave its GPUs in its last run */
    uint32_t moved;                       /* how often it was */
    int64_t unused_ns;                    /* it has not used its GPUs since, as was said; 0: it does */
    int64_t idle_ends_ns;                 /* as it was told */
    uint32_t idle_step;
    bool last; /* its time was up: all jobs that waited then go before it */
    uint32_t losses;
    bool charged; /* its last exit: a GPU failed, as another did under its workload */
    int64_t placed_ns;
    struct record_failure failure; /* of one without a workload */
    uint32_t oom_charged;          /* crashes out of GPU memory of its own */
    uint32_t harmed;               /* those that were a neighbour's */
    int64_t fence_bytes;
    bool unfenced;
    int64_t reserved_bytes; /* as promised to others: at its start, or since it was shrunk */
    int64_t counted_bytes;  /* as counted for its user: with its growth */
    struct record_submitted wants;
    int64_t seen_bytes[RECORD_MAX_GPUS];
    bool completed;
    int64_t started_ns; /* first; 0: never */
    int64_t ended_ns;
    uint32_t depends_count;
    struct record_depends depends[DEPENDS_MOST];
};

struct world_user {
    bool share_faulted;
    uint32_t retries;
    int64_t since_ns;
};

/* A reservation, and the jobs in its way when it was made. */
struct reservation {
    uint64_t job; /* 0: none */
    uint32_t count;
    uint32_t gpus[RECORD_MAX_GPUS];
    int64_t at_ns;
};

#define WORKLOADS 7 /* "w0" to "w5", and "w"; behind them "p:0" to "p:5", of one program */
#define USERS     6 /* from 1000 on; two in most worlds */

struct world {
    struct reservation reservation;
    bool reconfigured;
    bool lax; /* users shared MPS servers at some time */
    struct random random;
    uint64_t seed;
    struct core *core;
    struct record_list log;
    struct record_list decisions_of_step;
    int64_t now_ns;
    uint64_t next_job;
    struct world_user users[USERS];
    uint32_t user_count;
    struct world_job jobs[MAX_JOBS];
    struct record_failure failures[USERS][2 * WORKLOADS];
    struct record_allotted allotments[MAX_ALLOTMENTS]; /* by their numbers; over where until_ns is past */
};

/* Ends the program with the seed, the message and the core's state. */
void fail(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

struct world *world_new(uint64_t seed);
void world_free(struct world *world);
bool may_be_tried_again(uint32_t cause);
bool is_on(const struct world_job *job, uint32_t gpu);

/* Feeds one input; a refused input must change nothing. Returns whether it was taken. */
bool feed(struct world *world, struct record *input);
void decide(struct world *world);

/* world_inputs.c */
void is_used(struct world_job *job, int64_t unused_ns);
void reconfigure(struct world *world);
void random_input(struct world *world); /* time passes, and something happens */

#endif
