/* The allocator's free blocks of one pool, found by best fit: the smallest that is large enough, at the lowest address.
 *
 * They stand in bins by size, each a short sorted list. A bin that is full spills into sorted leaves, which take longer
 * but stay quick for any number of blocks. Of a real training run next to nothing spills. */
#ifndef CARMA_ESTIMATE_FREE_SET_H
#define CARMA_ESTIMATE_FREE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_BLOCK              UINT32_MAX
#define BLOCK_ROUND_BYTES     INT64_C(512)       /* sizes and addresses are multiples of it */
#define BLOCK_MAX_BYTES       (INT64_C(1) << 40) /* no block is larger */
#define BLOCK_ADDRESSES_BYTES (INT64_C(1) << 42) /* addresses are below it */

/* A piece of a segment, free or in use. The blocks of a segment are linked in order of address. */
struct block {
    int64_t address, bytes;
    uint32_t previous, next;           /* of the same segment, or NO_BLOCK */
    uint32_t free_previous, free_next; /* of the same bin, or NO_BLOCK */
    uint32_t idle;                     /* where it stands among the idle segments, if it is one */
    bool used, small;                  /* small: of the pool of small blocks */
    bool spilt;                        /* free, and in no bin */
};

#define FREE_BINS 896 /* sizes below 64 units one by one, then 32 for each doubling */

struct free_set {
    uint64_t filled[FREE_BINS / 64]; /* a bit for each bin that has blocks */
    uint32_t first[FREE_BINS];       /* valid where the bit is set */
    uint8_t counts[FREE_BINS];
    struct free_leaf *leaves;                       /* owned; those in use and those given up */
    uint32_t leaf_count, leaf_capacity, leaf_spare; /* leaf_spare: the first of those given up */
    uint32_t *order;                                /* owned: the leaves in use, in order */
    uint64_t *last;                                 /* owned: the last key of each */
    size_t order_count, order_capacity, last_capacity;
};

void free_set_init(struct free_set *set);
void free_set_release(struct free_set *set);

/* `blocks` is the array that numbers refer to. */
void free_set_insert(struct free_set *set, struct block *blocks, uint32_t number);
void free_set_remove(struct free_set *set, struct block *blocks, uint32_t number);
uint32_t free_set_best(const struct free_set *set, const struct block *blocks, int64_t bytes); /* or NO_BLOCK */

#endif
