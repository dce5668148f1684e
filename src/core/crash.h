/* How the end of a job that may be retried is judged: the evidence, and the consequences.
 *
 *   GPU_OOM     retried; ahead of the main queue where the observed memory confirms it, else in its place
 *   GPU_HANDLE a library could not allocate: as GPU_OOM where memory confirms it, else the job has failed
 *   MPS_FAULT, GPU_ERROR  not the job's fault: retried ahead of the main queue, with the same request; but
 *               where two GPUs failed under its workload, the job has failed (unless
 *               others' programs did not start on the second either: closing.h)
 *   LOST        its shepherd died, or the machine: retried in its place where the job or the configuration asks for it
 *   TIMEOUT     retried behind all waiting jobs, where the job asks for it, at most max_requeues times
 *   IDLE        it did not use its GPUs: not retried
 *
 * A job that somebody is attached to (carma run) is never retried: what was typed into it is gone.
 *
 * Only a limited number of a user's jobs go before the main queue within an hour; the others keep their place.
 * The first two together, and the three without fault of the job together, at most max_retries times each. */
#ifndef CARMA_CORE_CRASH_H
#define CARMA_CORE_CRASH_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct record;
struct record_exited;

/* Takes down the facts of the job's end, while it still has its GPUs; learns from them. `end`: an EXITED or a LOST. */
void crash_note(struct core *core, struct job *job, const struct record *end);

/* Whether a limit that carma chose, a fence or neighbours, left the job too little memory, as far as that was observed
 * at its end (an EXITED). While it still has its GPUs. */
bool crash_is_of_limit(const struct core *core, const struct job *job, const struct record *end);

/* Whether one of its GPUs, on which others had memory too, was full at its end. Likewise. */
bool crash_is_of_full_gpu(const struct core *core, const struct job *job, const struct record *end);

/* The workload's run completed, so earlier failures of GPUs no longer count against it. */
void crash_forgive(struct job *job);

/* The other GPU that failed under the job's workload before this end, which makes the failure the job's own; else
 * RECORD_NO_GPU. While the job still has its GPUs. */
uint32_t crash_other_gpu(const struct core *core, const struct job *job, const struct record_exited *exited);

/* Fills *verdict, REQUEUED or GAVE_UP. */
void crash_judge(const struct core *core, const struct job *job, int64_t now_ns, struct record *verdict);

#endif
