/* The memory and SM activity of a user's workload, as far as earlier runs have taught them. Integers only.
 *
 * Only the user's own runs teach: a workload of the same name of another user is another one. A reading of a GPU that
 * several users' jobs share teaches nothing, since one of them could move it at will. */
#ifndef CARMA_CORE_LEARN_H
#define CARMA_CORE_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "core/job.h"
#include "core/record.h"

struct alike;
struct core;
struct gpu;
struct kin;
struct user;

#define LEARN_PRIOR_PERMILLE 600 /* of a workload never observed: about the mean of the thesis's workloads */

/* Loading jobs use no SM: a reading tells of a resident only this long after it came. */
#define LEARN_LOADING_NS (60 * INT64_C(1000000000))

/* The knowledge of a user's workload; jobs with the same key share it. */
struct profile {
    struct user *user;
    uint32_t runs;       /* that completed, and did not meet their fence */
    bool tells;          /* the first of them counts in the distribution that others are told (guess/prior.h) */
    int64_t first_bytes; /* the memory of the first run; the other runs' differences from it, in parts of 10,000
                            of it: */
    int64_t distance_sum;
    int64_t distance_squares;
    int64_t outgrown_bytes; /* the memory of the last completed run with a declared request, where that was more; else
                               0 */
    int64_t
        peak_bytes; /* the most that any of them was observed to hold on a GPU, or needed at least when it crashed */
    int64_t estimated_bytes;   /* by the last estimate of a run that was submitted without; 0: none */
    int32_t activity_permille; /* solo SM activity */
    int64_t variance;          /* of that estimate, permille squared */
    struct record_failure failure;
    struct kin *kin;      /* the workloads of its program; borrowed; NULL: its name tells none */
    uint32_t jobs;        /* that have not ended */
    struct job *placed;   /* a list of those that have GPUs: not part of the state */
    struct alike *alikes; /* a list of those that wait: not part of the state either */
    uint32_t measures;    /* in which it is named (company.h): a cache, as is the next */
    uint32_t met;         /* of them, the speeds of it and another in company */
    UT_hash_handle hh;
    char workload[]; /* as long as it is: many have been submitted once */
};

/* Number of workloads that are remembered: the latest submitted. Beyond it only workloads that have jobs are kept. The
 * user with the most of them loses the oldest. */
#define LEARN_MOST_PROFILES 10000

/* The history of a user's workload, made where there is none; NULL for the empty key. */
struct profile *learn_profile(struct core *core, struct user *user, const char *workload);

/* NULL: there is none. */
const struct profile *learn_find(const struct core *core, uint32_t uid, const char *workload);

/* Nothing is known of a new profile; one without jobs goes. */
void learn_nothing(struct profile *profile);
void learn_drop(struct core *core, struct profile *profile);

/* The job was submitted: its workload is the latest, and the oldest may be forgotten for it. */
void learn_submitted(struct core *core, const struct job *job);

/* The profile has other figures now: GPUs where its jobs are may take other jobs. */
void learn_open_where_placed(struct core *core, struct profile *profile);

/* The job has come to a GPU, or leaves its GPUs: once or for each of them. */
void learn_placed(struct job *job);
void learn_left(struct job *job);

bool learned_activity_is_known(const struct job *job); /* by an estimate, or by readings */

/* Solo SM activity that the job is estimated to have. */
int32_t learned_activity(const struct job *job);

/* Nobody knows it, or it is guessed. */
static inline bool job_need_is_unknown(const struct job *job)
{
    return job->reserved_bytes < 0 || job->reservation_source == SOURCE_PRIOR;
}

/* The memory that the next run of a workload needs which has run. */
int64_t learned_bytes(const struct profile *profile);

/* Whether a sample of the GPU at at_ns would teach anything: not where residents came or went within the window. */
bool learn_sample_is_due(const struct core *core, const struct gpu *gpu, int64_t at_ns);

/* Learns the residents' activities from a sample of a GPU. The activity of a job that was alone is measured directly;
 * else it comes from regression (one step of a Kalman filter with independent estimates). */
void learn_activity(struct core *core, struct gpu *gpu, const struct record *sample);

/* The job was estimated after its submission: until a run shows more, that holds for its workload. */
void learn_estimate(struct core *core, struct job *job, int64_t bytes);

/* LEARN_RUN: a completed run teaches what the workload needs. LEARN_LIMITED_RUN: the run came to its end, but met its
 * fence or ran out. LEARN_LEAST: a run's memory has settled, or it crashed. The last two teach a lower bound. */
enum learn_from { LEARN_RUN, LEARN_LIMITED_RUN, LEARN_LEAST };
void learn_memory(struct core *core, struct job *job, int64_t bytes, enum learn_from from);

#endif
