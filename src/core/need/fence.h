/* The memory fence: the driver's limit on each process of a job under MPS. A job that needs more than its reservation
 * so runs itself out of memory, and not its neighbours.
 *
 * NVIDIA's limit (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT) counts the allocations of one process on one device, CUDA's own
 * included. A request that was declared is fenced as such: an out-of-memory error there is the job's own. Any other
 * figure is carma's guess. A job that runs out at a guessed fence while the GPU has free memory is retried once without
 * a fence, and is not charged. */
#ifndef CARMA_CORE_FENCE_H
#define CARMA_CORE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

struct core;
struct job;
struct record_placed;

/* Added to the request or the guess: half a GiB and a sixteenth. The first is for contexts and libraries, which
 * measurements inside a framework leave out; the second for fragmentation and the granularity of allocators. */
#define FENCE_HEADROOM_BYTES (512 * MIB)
#define FENCE_HEADROOM_PART  16

/* A figure with the headroom. */
int64_t fence_around(int64_t bytes);

/* The fence for each process of the job on each of its GPUs; -1: none. */
int64_t fence_for(const struct core *core, const struct job *job, const struct record_placed *placed);

/* Whether the fence that the job has is a guess. */
bool fence_is_guess(const struct job *job);

/* Whether the job's use has come so near to its fence that it may have wanted more: it used half of the fixed headroom.
 * More than the fence is the sum of several processes, and says nothing. */
bool fence_was_met(const struct job *job);

#endif
