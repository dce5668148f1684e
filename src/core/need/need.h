/* What does a job take? The third of the three questions that a decision asks of a waiting job, after whether it may be
 * considered (eligible.h) and whose turn it is (order.h): memory on each of its GPUs with the source of that figure,
 * and whether it wants them to itself. Its SM activity is in learn.h (learned_activity). Also the figures by which a
 * reservation changes while the job runs, and after it ran out. All bytes are of one GPU. */
#ifndef CARMA_CORE_NEED_H
#define CARMA_CORE_NEED_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct gpu;
struct job;

/* The memory to reserve for the job, and where that figure comes from (enum memory_source; may be NULL); -1: nobody
 * knows. */
int64_t need_memory(const struct core *core, const struct job *job, uint32_t *source);

/* Whether that figure is a guess: a quantile over other workloads. */
bool need_is_guessed(const struct core *core, const struct job *job);

/* Whether the job wants GPUs without residents. */
bool job_wants_idle(const struct core *core, const struct job *job);

/* Free memory that a GPU, or this GPU, must have to take the job beside others: on one GPU it may be more, never less.
 */
int64_t job_needed_bytes(const struct core *core, const struct job *job);
int64_t job_needed_bytes_on(const struct core *core, const struct job *job, const struct gpu *gpu);

/* The memory that an idle GPU must have for it, and where that figure is from. */
int64_t job_idle_bytes(const struct core *core, const struct job *job, uint32_t *source);

/* Whether there are GPUs on which a fence would keep it to its reservation. */
bool job_may_be_fenced(const struct core *core, const struct job *job);

/* Of a job that has GPUs, never more than one of these has: the most that it was observed to hold; the same once its
 * memory has settled, with a margin; its estimate, where it was started by a guess. */
int64_t need_observed(const struct core *core, const struct job *job);
int64_t need_settled(const struct core *core, const struct job *job);
int64_t need_estimated(const struct core *core, const struct job *job);

/* Of a job that ran out of memory, for its next attempt: where that was its own doing; where another job's, or a
 * guessed fence's. free_bytes are free on as many GPUs as it wants, of those that it could have. */
int64_t need_after_crash(const struct core *core, const struct job *job, int64_t free_bytes);
int64_t need_after_harm(const struct core *core, const struct job *job, int64_t free_bytes);

#endif
