/* GPUs on which programs do not start. A GPU that fails as soon as a program uses it is idle, so it would get every
 * next job, and fail it. But what a program says of a GPU proves nothing to others: anybody can write it.
 *
 * A start is dead if its GPU failed within CLOSING_START_NS of its placement. Dead starts count by user: those of
 * unlike workloads, each at most twice CLOSING_NS after his one before. CLOSING_STARTS of them close the GPU to his
 * jobs alone. To everybody it is closed where CLOSING_USERS users have some, each of whom counts once: beside one who
 * lies, two must err. A run that has lasted and uses the GPU cancels the dead starts before it began. A closed GPU
 * opens after CLOSING_NS, which further dead starts do not prolong; when an administrator says so; or when a run that
 * has lasted there ends. After CLOSING_NS one more dead start closes it to a user again, if it is unlike his last two.
 * To everybody it takes all users again, since a liar would add the one that were missing. */
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

/* To the job. Also the GPU that failed under it last is, where there are enough others. */
bool closing_is_closed_to(const struct core *core, const struct job *job, const struct gpu *gpu);

#endif
