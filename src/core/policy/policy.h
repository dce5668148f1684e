/* A policy is a placement policy: which of the GPUs that qualify does the next job get? One per file; all in policy.c's
 * table.
 *
 * The core itself has the parts common to all policies (decide.c): FIFO order, the memory ledger, exclusive jobs, OOM
 * retries, and which GPU qualifies. A policy only says which of those rules it waives, and ranks. */
#ifndef CARMA_CORE_POLICY_POLICY_H
#define CARMA_CORE_POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct gpu;
struct job;

struct policy {
    const char *name;
    const char *summary; /* one line for --help and the manual */
    bool shares;         /* may put a job on a GPU that has residents */
    bool idle_first;     /* takes idle GPUs, in index order, while there are enough of them */
    bool waives_load;    /* does not ask for the free-memory floor or the SM activity cap */
    bool predicts;       /* goes by predicted slowdown (core/share/slowdown.h) instead of measured activity */
    /* Smaller is better; equal ranks go by index. Never called when `shares` is false. */
    int64_t (*rank)(const struct core *core, const struct job *job, const struct gpu *gpu);
};

extern const struct policy policy_exclusive;
extern const struct policy policy_round_robin;
extern const struct policy policy_magm;
extern const struct policy policy_lug;
extern const struct policy policy_mug;
extern const struct policy policy_first_fit;
extern const struct policy policy_best_fit;
extern const struct policy policy_carma;

extern const struct policy *const policies[]; /* NULL-terminated */

const struct policy *policy_find(const char *name); /* NULL: no policy has this name */

#endif
