/* The state, for the core's own files, with the types of which most of it is made. Other parts' headers are included
 * where they are used: tests/layers says which file may see which. */
#ifndef CARMA_CORE_STATE_H
#define CARMA_CORE_STATE_H

#include "base/strbuf.h"
#include "core/core.h"
#include "core/guess/prior.h"
#include "core/ledger.h"
#include "core/policy/policy.h"
#include "core/learn/profile.h"
#include "core/user.h"
#include "core/waiting/queue.h"

struct autocluster;
struct autoclusters_of_width;
struct awaited;
struct common_wants;
struct job_array;
struct line;
struct measure;
struct order_known;
struct gpu_space;

struct core {
    struct core_config config;
    const struct policy *policy; /* of config.policy */
    struct gpu **gpus;           /* owned, each by itself: they stand in a list */
    uint32_t gpu_count;
    int64_t largest_gpu_bytes; /* of their totals */
    size_t gpu_capacity;
    struct job *jobs;   /* uthash by id, owned: all that have not ended */
    struct job **ended; /* owned array, and they are: those that ended since the last input (core_recall_job) */
    size_t ended_count, ended_capacity;
    struct common_wants *wants;  /* the jobs' */
    uint32_t profile_count;      /* of all users */
    struct measure *measures;    /* uthash by key, owned, in the order of their latest readings */
    struct prior prior;          /* with which each user begins */
    struct job_array *arrays;    /* uthash, owned: those of which some jobs have to wait (waiting/array.h): a cache */
    struct user *users;          /* uthash by uid, owned: all that ever had a job */
    struct user_group *groups;   /* owned list: all that users were ever put in */
    uint64_t last_place;         /* the largest place in the main queue that was given to a job */
    uint64_t last_arrival;       /* the largest place in a class that goes by arrival: a cache (order.c) */
    uint32_t without_gpu;        /* placed jobs that need none: follows from them */
    struct core_resources taken; /* by jobs that have GPUs: follows from them */
    struct queue waiting;        /* QUEUED, in the order of turns */
    struct queue held;           /* HELD, the same */
    struct queue kept;           /* QUEUED, but for other jobs or a time (job_is_kept), the same */
    struct queue vain;           /* QUEUED, and depended in vain: to be refused */
    struct awaited *tellers;     /* owned list: jobs of which others are to be told that they started or ended */
    struct queue undecided;      /* CRASHED, or STOPPING and not signalled yet */
    struct queue shrinking;      /* RUNNING with a reservation that may be shrunk, in the order of first use */
    int64_t next_decision_ns;    /* no placement before */
    uint32_t round_robin_next;
    uint64_t reserved_job;              /* the one that has GPUs reserved; 0: none */
    bool drained;                       /* the node is: each GPU is node_drained, also one that comes */
    struct record_drain drain;          /* by whom and why */
    struct record_allotted *allotments; /* owned array, by their numbers: those that are not over (gpus/allotment.h) */
    uint32_t allotment_count, last_allotment; /* the latest number */
    size_t allotment_capacity;
    int64_t allotted_ns;        /* what they say is as of then */
    uint32_t settling_count;    /* of the GPUs with a settling_job */
    int64_t smallest_gpu_bytes; /* total, of the GPUs: a cache */
    struct strbuf kinds;        /* of the GPUs, in words (gpus/suits.h): the same */
    uint32_t instance_count;    /* of the GPUs, those that are MIG instances: the same */
    uint32_t mps_count;         /* of the GPUs, those on which MPS serves: the same */
    bool corrections_due;       /* a job may have outgrown its reservation, or have an estimate now: a cache */
    bool moves_due;             /* a job may have been slowed for too long: the same */
    struct profile *news;  /* with figures that changed by this record (learn.h): a list; a cache, as is the next */
    bool guesses_changed;  /* figures of jobs of unknown need did */
    int64_t next_begin_ns; /* no job of `kept` may begin before: the same. INT64_MIN: it has to be looked for */
    int64_t next_idle_ns;  /* no running job is warned of its idle limit, or ended by it, before: the same */
    int64_t next_late_ns;  /* no waiting job is too late for its deadline before: the same */
    bool restoring;        /* a snapshot is being applied: until the first record of another kind */
    int64_t decided_ns;    /* the time of the latest decision */
    /* Caches, not state: a job is examined again only when something has opened since its last examination. */
    uint64_t applied;                /* records so far */
    uint64_t activity_version;       /* of pauses, estimates and settings: predictions for all GPUs are made anew */
    struct order_known *order_known; /* owned; by itself, since looking at a const core fills it (order.c) */
    uint64_t openings;
    struct gpu *last_opened;
    struct autocluster *autoclusters; /* uthash, owned */
    struct line *lines; /* owned list (utlist), with these two and those of users (user.line); NULL: none yet */
    struct line *apart, *common;
    struct autoclusters_of_width *widths; /* owned array */
    uint32_t width_count;
    size_t width_capacity;
    struct gpu_space *spaces; /* owned array: of the GPUs, the largest first, as found last (waiting/backfill.c) */
    uint32_t space_count;
    size_t space_capacity;
};

static inline struct job *core_job_by_id(const struct core *core, uint64_t id) /* NULL: there is none */
{
    struct job *job;

    HASH_FIND(hh, core->jobs, &id, sizeof id, job);
    return job;
}

#endif
