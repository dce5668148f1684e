/* What is made of a job that ended in a way that may be tried again: what its end proves, and what follows.
 *
 *   GPU_OOM     tried again; ahead of the main queue where what was seen of the memory bears it out, else in its place
 *   GPU_HANDLE  a library could not allocate: the same where memory bears it out, else the job has failed
 *   MPS_FAULT, GPU_ERROR  not its doing: tried again ahead of the main queue, with the same claim
 *
 * The first two together, and the last two together, at most max_recoveries times each. */
#ifndef CARMA_CORE_CRASH_H
#define CARMA_CORE_CRASH_H

struct core;
struct job;
struct record;

/* Takes down the facts of the job's end, while it still has its GPUs; learns from them. `exited`: such a record. */
void crash_note(struct core *core, struct job *job, const struct record *exited);

/* Fills *verdict, but for the time: REQUEUED or GAVE_UP. */
void crash_judge(const struct core *core, const struct job *job, struct record *verdict);

#endif
