/* Each user: use, and a budget of OOM retries; and all that is learned from the
 * user's runs. */
#ifndef CARMA_CORE_USER_H
#define CARMA_CORE_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "core/record.h"

struct core;
struct job;
struct program_history;
struct prior;
struct profile;

/* Users who have one share of the GPUs together. */
struct user_group {
    char name[RECORD_GROUP_SIZE];
    uint32_t share;
    int64_t use; /* its users', while lines are sorted; and what those of their jobs add that are ranked (order.c) */
    int64_t ranked;
    struct user_group *next;
};

struct user {
    uint32_t uid;
    uint32_t unfinished;   /* jobs: this and the next three follow from them */
    uint32_t dependencies; /* of jobs of his, on others */
    uint32_t running;      /* of them, those that have GPUs */
    uint32_t gpus;         /* that these have: one that is shared counts for each */
    uint64_t memory_bytes; /* that these have reserved in all, and hold on GPUs that they were not given */
    int64_t retries_ns;    /* when the hour began in which retries are counted */
    uint32_t retries;      /* jobs that were put before the main queue in it */
    bool share_faulted;    /* the MPS server of his jobs does not serve */
    uint32_t share;        /* of the GPUs, by which his use is divided (use_compare): 1, unless he was given another */
    struct user_group *group; /* borrowed; within it his share counts against its other users'; NULL: he is in none */
    int64_t use;              /* of the GPUs, at use_ns (use.h); 0 before he had any */
    int64_t use_ns;
    int64_t kept_ns;       /* until when GPUs were kept for a job of his (waiting/reserve.h); 0: never */
    int64_t held_permille; /* of GPUs, by those of his jobs that have some: follows from them */
    uint64_t use_changes;  /* of use, use_ns and held_permille: a cache's version (waiting/order.c) */
    struct line *line;     /* borrowed: his jobs that wait in turns (waiting/autocluster.h); NULL: none yet */
    struct prior *own;     /* owned: of the user's workloads; NULL: none has completed (core/guess/prior.h) */
    struct prior *told;    /* owned: the same, as others are told of it */
    int64_t likely_bytes;  /* of a workload of unknown need, others' figures folded in: a cache, as is the next */
    int64_t careful_bytes;
    struct profile *profiles;         /* uthash by workload, owned, the latest submitted last (core/learn/learn.h) */
    struct program_history *programs; /* uthash by program, owned: a cache */
    uint32_t measures;                /* as counted last, of the user's workloads (core/learn/pairs.c) */
    UT_hash_handle hh;
};

#define USER_MOST_SHARE 1000

/* Of those who are compared first: the user's group, or himself. */
static inline uint32_t user_first_share(const struct user *user)
{
    return user->group ? user->group->share : user->share;
}

/* The user of what an earlier carma has learned: it did not keep the user. */
#define USER_UNKNOWN UINT32_MAX

/* Whether the user (may be NULL) is in the group of that name, with that share; "" and 0: in none. */
bool user_is_in(const struct user *user, const char *group, uint32_t share);

/* NULL: there is none. */
struct user *user_find(const struct core *core, uint32_t uid);

/* The job has got GPUs with its reservation; its reservation has changed while it has them; it leaves them. */
void user_charge(const struct core *core, struct job *job);
void user_recharge(const struct core *core, struct job *job);
void user_discharge(struct job *job);

/* The job, which has GPUs, was observed to hold `bytes` on others. */
void user_strays(struct job *job, int64_t bytes);

/* Adds up again, for a job that has GPUs and a known counted_bytes. */
void user_counts(struct job *job);

/* The part of a reservation on each GPU that counts against its user's limit (eligible.c): at least the user's whole
 * request, however little the job was observed to use. And the same on all its GPUs; -1: on each, the memory of the
 * largest. */
int64_t user_counting(const struct job *job, int64_t reserved_bytes);
int64_t user_bytes_in_all(const struct core *core, uint32_t gpus, int64_t reserved_bytes);

/* The most that the job can ever have on one of its GPUs. */
int64_t user_most_bytes(const struct core *core, const struct record_submitted *wants);

/* A job is put before the main queue; and whether that may be done with one more of its user's. */
void user_retries(struct job *job, int64_t at_ns);
bool user_may_retry(const struct core *core, const struct job *job, int64_t at_ns);

#endif
