/* GPUs on which programs do not start. A GPU that fails as soon as a program uses it is idle, so it would get every
 * next job, and fail it. But what a program says of a GPU proves nothing to others: anybody can write it.
 *
 * A start is dead if its GPU failed within CLOSING_START_NS of its placement. Dead starts count by user: those of
 * unlike workloads, each at most twice CLOSING_NS after his one before. CLOSING_STARTS of them close the GPU to his
 * jobs alone. To everybody it is closed where CLOSING_USERS users have some, each of whom counts once: beside one who
 * lies, two must err. A workload counts for one GPU alone: of one that has failed on another before, nobody knows
 * whether the GPU or it is the cause. And no more than half of the GPUs are closed to everybody: a third user's dead
 * start on a further one closes it to these three, each for CLOSING_NS. A run that has lasted and uses the GPU cancels
 * the dead starts before it began. A closed GPU opens after CLOSING_NS, which further dead starts do not prolong; when
 * an administrator says so; or when a run that has lasted there ends. After CLOSING_NS one more dead start closes it to
 * a user again, if it is unlike his last two. To everybody it takes all users again, since a liar would add the one
 * that were missing.
 *
 * A job under which a GPU failed avoids it where there are enough others, for CLOSING_NS from then on: its wait for
 * these has an end. */
#ifndef CARMA_CORE_GPUS_CLOSING_H
#define CARMA_CORE_GPUS_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

struct core;
struct gpu;
struct job;
struct record;

#define CLOSING_START_NS (60 * NS_PER_SEC)
#define CLOSING_NS       (1800 * NS_PER_SEC)

/* A run has ended: what that says of its GPUs. */
void closing_note_end(struct core *core, const struct job *job, const struct record *ended);

/* Opens the GPU, and forgets its dead starts. */
void closing_open(struct core *core, struct gpu *gpu);

/* Opens it to those whose time is over. */
void closing_try(struct core *core, struct gpu *gpu, int64_t now_ns);

/* Until when it is closed to the user, or to CLOSING_EVERYBODY; 0: it is open. */
int64_t closing_until_ns(const struct gpu *gpu, uint32_t uid);

/* When it opens next to somebody; 0: it is open to all. */
int64_t closing_next_ns(const struct gpu *gpu);

/* Whether so many other workloads of the job's user and other users (each counts once) had dead starts there that its
 * failure is the GPU's. */
bool closing_is_suspect(const struct gpu *gpu, const struct job *job);

/* To the job. Also the GPU that it avoids is, as of the latest decision. */
bool closing_is_closed_to(const struct core *core, const struct job *job, const struct gpu *gpu);

/* Until when the job avoids the GPU that failed under it; 0: none did. */
int64_t closing_avoids_until_ns(const struct core *core, const struct job *job);

/* The job waits, and may avoid a GPU. */
void closing_note_avoided(struct core *core, const struct job *job);

/* Who avoids this GPU is looked at then, at the next decision at the earliest. */
void closing_look_at_avoided(const struct core *core, uint32_t gpu, int64_t at_ns);

/* It is now_ns: the GPUs that jobs have avoided for long enough are open to them. */
void closing_end_avoided(struct core *core, int64_t now_ns);

/* The last failure of a GPU under the job; jobs of one workload share it. */
const struct record_failure *closing_failure_of(const struct job *job);
void closing_set_failure(struct job *job, uint32_t gpu, int64_t at_ns);

/* The GPU that failed under the job when it ran last, and on which it is not retried where another could take it; else
 * RECORD_NO_GPU. */
uint32_t closing_failed_gpu(const struct job *job);

/* The GPU that failed last under the job's workload, whose runs have not completed since; else RECORD_NO_GPU. */
uint32_t closing_workloads_gpu(const struct job *job);

#endif
