/* PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, without max_split_size and expandable segments, which
 * are off unless asked for), in numbers only. Sizes are bytes. Its work is bounded: an allocation or a release looks at a
 * few hundred entries at most, however many blocks there are. */
#ifndef CARMA_ESTIMATE_ALLOCATOR_H
#define CARMA_ESTIMATE_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATOR_NO_BLOCK UINT32_MAX

/* A piece of a segment, free or in use. The blocks of a segment are linked in order of address. */
struct block {
    int64_t address, bytes;
    uint32_t previous, next; /* of the same segment; ALLOCATOR_NO_BLOCK */
    bool used, small;        /* small: of the pool of small blocks */
};

struct free_block {
    int64_t bytes, address;
    uint32_t block;
};

/* Free blocks of one pool in order of (bytes, address): a list of leaves, each a short sorted array. */
struct free_set {
    struct free_leaf *leaves; /* owned; those in use and those given up */
    uint32_t leaf_count, leaf_capacity, leaf_spare; /* leaf_spare: the first of those given up */
    uint32_t *order; /* owned: the leaves in use */
    size_t order_count, order_capacity;
};

struct allocator {
    struct block *blocks; /* owned */
    size_t block_count, block_capacity;
    uint32_t block_spare; /* the first of the blocks no longer needed, linked by next */
    struct free_set free[2]; /* of large blocks, of small ones */
    int64_t limit_bytes, next_address;
    int64_t reserved_bytes, peak_reserved_bytes, allocated_bytes, peak_allocated_bytes;
    uint64_t segments, segments_released;
    bool out_of_memory;
};

void allocator_init(struct allocator *allocator, int64_t limit_bytes); /* <= 0: no limit */
void allocator_release(struct allocator *allocator);

/* The block's number; bytes >= 1. Where the limit is reached the free cached segments go back first; where that is not
 * enough, out_of_memory is set and the segment taken all the same. */
uint32_t allocator_take(struct allocator *allocator, int64_t bytes);
void allocator_give(struct allocator *allocator, uint32_t block);

#endif
