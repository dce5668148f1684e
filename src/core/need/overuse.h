/* Jobs that use more GPU memory than was reserved for them: how their reservations grow. Also which job is the cause
 * when another runs out of memory.
 *
 * A reservation grows to the job's observed use. A job is a victim where it ran out of GPU memory within its own grant,
 * while another exceeded its grant on the same GPU. The cause is the job that exceeded its grant by the most. A job
 * that was not given the GPU was granted nothing there. Only the reserve view grants anything; under the monitor view
 * nobody is a victim. */
#ifndef CARMA_CORE_OVERUSE_H
#define CARMA_CORE_OVERUSE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct record_list;

/* The memory that the job may use on each GPU without fault: its reservation when it started, and at least its declared
 * request. -1: all of the GPU, since its need was unknown. */
int64_t overuse_granted_bytes(const struct job *job);

/* Whether it is more than `most`: the measurement was rounded up, and a difference below a quantum may come from that.
 */
bool overuse_is_beyond(int64_t bytes, int64_t most);

/* How much more the job was observed to use on one of its GPUs; 0: no more. */
int64_t overuse_bytes(const struct job *job);

/* The job that ran this one out of memory, where this one held or asked for needed_bytes on a GPU at its end (at_ns);
 * 0: no other job. It may have ended shortly before, and be gone. */
uint64_t overusing_job(const struct core *core, const struct job *job, int64_t needed_bytes, int64_t at_ns);

/* The job leaves its GPUs: those on which it exceeded its grant beside others remember it. */
void overuse_left(struct core *core, const struct job *job, int64_t at_ns);

#endif
