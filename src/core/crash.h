/* What is made of a job that ended in a way that may be tried again: what its end proves, and what follows.
 *
 *   GPU_OOM     tried again; ahead of the main queue where what was seen of the memory bears it out, else in its place
 *   GPU_HANDLE  a library could not allocate: the same where memory bears it out, else the job has failed
 *   MPS_FAULT, GPU_ERROR  not its doing: tried again ahead of the main queue, with the same claim
 *   LOST        its shepherd died, or the machine: tried again in its place where the job or the configuration asks for it
 *   TIMEOUT     behind all who wait, where the job asks for it, at most max_requeues times
 *
 * Only so many jobs of a user are put before the main queue within an hour; those beyond go back to their place there.
 * The first two together, and the three that were not its doing together, at most max_recoveries times each. */
#ifndef CARMA_CORE_CRASH_H
#define CARMA_CORE_CRASH_H

#include <stdint.h>

struct core;
struct job;
struct record;

/* Takes down the facts of the job's end, while it still has its GPUs; learns from them. `end`: an EXITED or a LOST. */
void crash_note(struct core *core, struct job *job, const struct record *end);

/* Fills *verdict, REQUEUED or GAVE_UP. */
void crash_judge(const struct core *core, const struct job *job, int64_t now_ns, struct record *verdict);

#endif
