/* PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp), in numbers only. Sizes are bytes. With expandable
 * segments each pool has one, which grows at its end; where the limit is reached, what is free in them goes back to the
 * GPU. The driver's own pool (cudaMallocAsync) is assumed to keep what it once had, in pieces of 32 MiB, and to find a
 * place for all that fits: it maps memory anew. */
#ifndef CARMA_ESTIMATE_ALLOCATOR_H
#define CARMA_ESTIMATE_ALLOCATOR_H

#include "estimate/program/allocator_settings.h"
#include "estimate/program/free_set.h"

struct allocator {
    struct block *blocks; /* owned */
    size_t block_count, block_capacity;
    uint32_t block_spare;    /* the first of the blocks no longer needed, linked by next */
    struct free_set free[2]; /* of large blocks, of small ones */
    uint32_t *idle;          /* owned: free blocks that are whole segments */
    size_t idle_count, idle_capacity;
    int64_t limit_bytes, next_address;
    int64_t reserved_bytes, peak_reserved_bytes, allocated_bytes, peak_allocated_bytes;
    uint64_t segments, segments_released;
    bool out_of_memory;
    struct allocator_settings settings; /* set behind allocator_init() */
    uint32_t tail[2];                   /* of expandable ones: the last block of the large pool's, of the small one's */
};

void allocator_init(struct allocator *allocator, int64_t limit_bytes); /* <= 0: no limit */
void allocator_release(struct allocator *allocator);

/* The block's number; bytes from 1 to BLOCK_MAX_BYTES. Where the limit is reached the free cached segments go back
 * first. Where that is not enough, out_of_memory is set and the segment taken all the same. NO_BLOCK: all addresses are
 * used up; out_of_memory is set. */
uint32_t allocator_take(struct allocator *allocator, int64_t bytes);
/* The same for memory that its user can do without: NO_BLOCK also where the limit does not allow it. It does not count
 * as out of memory. */
uint32_t allocator_try(struct allocator *allocator, int64_t bytes);
void allocator_give(struct allocator *allocator, uint32_t block);
void allocator_empty_cache(struct allocator *allocator); /* segments that are free go back to the GPU */

#endif
