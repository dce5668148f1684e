/* What is made of a job that ended in a way that may be tried again: what its end proves, and what follows.
 *
 *   GPU_OOM     tried again; ahead of the main queue where what was seen of the memory bears it out, else in its place
 *   GPU_HANDLE  a library could not allocate: the same where memory bears it out, else the job has failed
 *   MPS_FAULT, GPU_ERROR  not its doing: tried again ahead of the main queue, with the same claim; but
 *               where one GPU failed under its workload and then another does, the job has failed
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
struct record_exited;

/* Takes down the facts of the job's end, while it still has its GPUs; learns from them. `end`: an EXITED or a LOST. */
void crash_note(struct core *core, struct job *job, const struct record *end);

/* The workload's run completed: what GPUs did under it before does not speak against it. */
void crash_forgive(struct job *job);

/* The other GPU that failed under the job's workload before this end, which makes the failure the job's own; else
 * RECORD_NO_GPU. While the job still has its GPUs. */
uint32_t crash_other_gpu(const struct job *job, const struct record_exited *exited);

/* Fills *verdict, REQUEUED or GAVE_UP. */
void crash_judge(const struct core *core, const struct job *job, int64_t now_ns, struct record *verdict);

#endif
