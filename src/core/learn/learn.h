/* The memory and SM activity of a user's workload, as far as earlier runs have taught them. Integers only.
 *
 * Only the user's own runs teach: a workload of the same name of another user is another one. A reading of a GPU that
 * several users' jobs share teaches nothing, since one of them could move it at will. */
#ifndef CARMA_CORE_LEARN_H
#define CARMA_CORE_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/job.h"
#include "core/learn/profile.h"

struct core;
struct gpu;
struct user;

#define LEARN_PRIOR_PERMILLE 600 /* of a workload never observed: about the mean of the thesis's workloads */

/* Loading jobs use no SM: a reading tells of a resident only this long after it came. */
#define LEARN_LOADING_NS (60 * INT64_C(1000000000))

/* Number of workloads that are remembered: the latest submitted. Beyond it only workloads that have jobs are kept. The
 * user with the most of them loses the oldest. */
#define LEARN_MOST_PROFILES 10000

/* The history of a user's workload, made where there is none; NULL for the empty key. */
struct profile *learn_profile(struct core *core, struct user *user, const char *workload);

/* Whether it differs from one that a submission would make anew. */
bool learn_knows(const struct profile *profile);

/* NULL: there is none. */
const struct profile *learn_find(const struct core *core, uint32_t uid, const char *workload);

/* Nothing is known of a new profile. */
void learn_nothing(struct profile *profile);

/* The core knows other figures of the workload, or beside others: its waiting jobs may need less. They are looked at at
 * the end of the record (waiting/autocluster.h). */
enum learn_news { NEWS_FIGURES = 1, NEWS_COMPANY };
void learn_note_news(struct core *core, struct profile *profile, enum learn_news news);

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

/* The job was estimated after its submission: until a run shows more, that holds for its workload. */
void learn_estimate(struct core *core, struct job *job, int64_t bytes);

/* LEARN_RUN: a completed run teaches what the workload needs. LEARN_LIMITED_RUN: the run came to its end, but met its
 * fence or ran out. LEARN_LEAST: a run's memory has settled, or it crashed. The last two teach a lower bound. */
enum learn_from { LEARN_RUN, LEARN_LIMITED_RUN, LEARN_LEAST };
void learn_memory(struct core *core, struct job *job, int64_t bytes, enum learn_from from);

/* The content of the job's SUBMITTED record. */
struct record_submitted job_submitted(const struct job *job);

#endif
