/* The memory fence: what the driver gives each process of a job that MPS serves, so that a job that needs more than was
 * reserved for it runs itself out of memory, and not its neighbours.
 *
 * NVIDIA's limit (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT) counts what one process allocates on one device, what CUDA keeps for
 * itself included. A request that was declared is fenced as such: an out-of-memory error there is the job's own. Any other
 * figure is carma's guess: who runs out at a guessed fence while the GPU has room is tried again once without one, and is
 * not charged with it. */
#ifndef CARMA_CORE_FENCE_H
#define CARMA_CORE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

struct core;
struct job;
struct record_placed;

/* Beyond the request or the guess: half a GiB for contexts and libraries, which people who measure inside a framework do
 * not count, and a sixteenth for fragmentation and the granularity of allocators. */
#define FENCE_HEADROOM_BYTES (512 * MIB)
#define FENCE_HEADROOM_PART  16

/* The fence for each process of the job on each of its GPUs; -1: none. */
int64_t fence_for(const struct core *core, const struct job *job, const struct record_placed *placed);

/* Whether the fence that the job has is a guess. */
bool fence_is_guess(const struct job *job);

#endif
