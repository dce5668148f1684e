/* Workloads of one program of one user: its runs with other arguments. Where three of them or more needed equal memory,
 * their arguments do not matter to it. Equal is the same bin of the distribution, or its neighbour. Their need then
 * says more of a job of unknown need than that of all other workloads. Programs with fewer or with unlike runs are
 * ignored: a request that is lowered for two runs, or for runs that differ, runs jobs out of memory
 * (docs/estimation.md).
 *
 * The program is the part of a workload's name before ':'. Its distribution is a Pólya urn. The user's own distribution
 * (prior.h) counts as much as one workload of the program. Runs of other users do not count. Each workload counts with
 * the memory of its first completed run. Half of its weight is put on that memory, and half on twice as much: the next
 * argument may matter. */
#ifndef CARMA_CORE_PROGRAM_HISTORY_H
#define CARMA_CORE_PROGRAM_HISTORY_H

#include "base/hash.h"
#include "core/guess/prior.h"

struct profile;
struct user;

struct program_history {
    struct user *user;
    uint32_t profiles;           /* of the program */
    uint32_t completed;          /* of them, those with a completed run */
    uint32_t counts[PRIOR_BINS]; /* of these */
    int64_t likely_bytes;        /* a cache, as of struct prior; 0: they needed unlike memory, or are too few */
    UT_hash_handle hh;
    char name[];
};

/* The user's program of the workload; one more of its profiles is there. NULL: the name has none. */
struct program_history *program_of_new(struct user *user, const char *workload);

/* The profile is about to go. */
void program_forget_profile(struct core *core, const struct profile *profile);

/* The first run of the profile has completed. */
void program_completed(struct core *core, const struct profile *profile, int64_t bytes);

/* The user's own distribution, the configuration or the largest GPU is another. True: a likely need is, too. */
bool programs_refresh(const struct core *core, struct user *user);

/* The likely need of a job of unknown need: its program's, where the arguments do not matter. The careful need is the
 * user's in any case, because the next argument may matter. */
int64_t program_likely_bytes(const struct job *job);
int64_t program_careful_bytes(const struct job *job);

void programs_free(struct user *user);

#endif
