/* Replays a program through PyTorch's caching allocator (CUDACachingAllocator). Sizes round up to 512 B. Requests up to
 * 1 MiB come from 2 MiB segments, under 10 MiB from 20 MiB segments. Larger ones get a segment of their own, rounded up
 * to 2 MiB. The best fit is by (size, address). A block splits when the rest is >= 512 B (small) or > 1 MiB (large);
 * neighbours merge. Where the GPU is full the free cached segments are released and the request retried. */
#ifndef CARMA_ESTIMATE_REPLAY_H
#define CARMA_ESTIMATE_REPLAY_H

#include <stdbool.h>

#include "estimate/program/program.h"
#include "estimate/program/workspace.h"

struct replay_options {
    struct workspace_rule rule;
    int64_t limit_bytes; /* the GPU's memory for the allocator's segments; <= 0: no limit */
};

struct replay_result {
    int64_t peak_reserved_bytes;
    int64_t peak_allocated_bytes;
    int64_t peak_tensor_bytes; /* as they were asked for: of larger tensors never less, whatever the blocks are */
    int64_t held_tensor_bytes; /* of these at the end: the model and the optimizer's states */
    bool out_of_memory;
    uint64_t segments_released; /* cached segments given back because the GPU was full */
    /* When most was allocated: by category, in bytes as they were asked for. More reserved memory, then or later, is
     * fragmentation: rounding, and cached blocks that did not fit a request. */
    int64_t at_peak[MEMORY_CATEGORY_COUNT];
    uint32_t peak_event;
};

/* Out of memory, it goes on as if the GPU were larger, so that the peak says how much is missing. The peak is then more
 * than the limit. A program that needs terabytes has requests beyond BLOCK_ADDRESSES_BYTES, which are left out: also
 * out of memory. */
void program_replay(const struct program *program, const struct replay_options *options, struct replay_result *result);

#endif
