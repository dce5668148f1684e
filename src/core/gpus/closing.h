/* GPUs on which programs do not start. A GPU that fails as soon as a program uses it is idle, so it would get every
 * next job, and fail it.
 *
 * A start is dead if its GPU failed within CLOSING_START_NS of its placement. CLOSING_STARTS dead starts in a row, of
 * unlike workloads, none more than twice CLOSING_NS after the one before, close the GPU: to everybody, or, where all
 * were one user's, to his jobs alone, since what a program says of a GPU proves nothing to others. It opens after
 * CLOSING_NS, when an administrator says so, or when a run that began before has lasted. After CLOSING_NS one dead
 * start is enough to close it again: the others still count. */
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

/* Opens the GPU, and forgets its dead starts unless they are kept. */
void closing_open(struct core *core, struct gpu *gpu, bool keeps_starts);

/* Whether enough starts of other workloads died there that one more would close it. */
bool closing_is_suspect(const struct gpu *gpu, const struct job *job);

/* To the job. Also the GPU that failed under it last is, where there are enough others. */
bool closing_is_closed_to(const struct core *core, const struct job *job, const struct gpu *gpu);

#endif
