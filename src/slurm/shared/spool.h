/* The folder by which carma-slurm-step tells carma-slurm-agent what must outlive a step, and the processes of one job
 * tell one another what they know. Root's alone, and made by the agent: where it has never been, carma gives no GPUs.
 * Orders are files JOB.RESTART.WHAT of lines "key value"; the agent takes an order away when Slurm has been told. Facts
 * are files JOB.NAME. JOB is slurmd's number, which one task of an array or one component has on its node; the agent
 * asks Slurm for the name by which its commands know that job alone.
 *
 * Orders: `refused` (the job did not get its GPUs), `retry` (it ran out of GPU memory, or met another's fault),
 * `ended`, and `end` (carmad has not heard of the job's end). */
#ifndef CARMA_SLURM_SHARED_SPOOL_H
#define CARMA_SLURM_SHARED_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* On disk when it returns 0. */
int spool_order(const char *folder, uint32_t job, uint32_t restart, const char *what, const char *lines,
                struct error *err);

/* Waits until the agent has taken the order; false at the deadline. */
bool spool_await(const char *folder, uint32_t job, uint32_t restart, const char *what, int64_t deadline_ms);

/* Not synced, since a job whose machine has lost its power starts anew. */
int spool_put(const char *folder, uint32_t job, const char *name, int64_t value);
bool spool_get(const char *folder, uint32_t job, const char *name, int64_t *value);
int spool_put_text(const char *folder, uint32_t job, const char *name, const char *text);
bool spool_get_text(const char *folder, uint32_t job, const char *name, char *text, size_t size);
void spool_forget(const char *folder, uint32_t job, const char *name);

#endif
