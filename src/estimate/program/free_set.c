#include "estimate/program/free_set.h"

#include <string.h>

#include "base/memory.h"

#define ADDRESS_BITS 33 /* of BLOCK_ADDRESSES_BYTES in units of BLOCK_ROUND_BYTES */
#define BIN_BLOCKS   16
#define BIN_BITS     5 /* 2^BIN_BITS bins for each doubling */
#define LEAF_ENTRIES 32

_Static_assert(BLOCK_ADDRESSES_BYTES / BLOCK_ROUND_BYTES == INT64_C(1) << ADDRESS_BITS, "an address fits into its key");
_Static_assert(BLOCK_MAX_BYTES / BLOCK_ROUND_BYTES <= INT64_C(1) << (64 - ADDRESS_BITS), "and a size of 1 and more");

struct free_leaf {
    uint32_t count, next_spare;
    uint32_t blocks[LEAF_ENTRIES];
    uint64_t keys[LEAF_ENTRIES];
};

static uint64_t units_of(int64_t bytes)
{
    return (uint64_t)(bytes / BLOCK_ROUND_BYTES);
}

/* Larger blocks are in later bins. */
static size_t bin_of(uint64_t units)
{
    unsigned int shift;

    if (units < 2 << BIN_BITS)
        return units;
    shift = 63 - BIN_BITS - (unsigned int)__builtin_clzll(units);
    return ((size_t)shift << BIN_BITS) + (units >> shift);
}

/* By size, then address. No block is of no units: the largest fits as well. */
static uint64_t key_of(int64_t bytes, int64_t address)
{
    return (units_of(bytes) - 1) << ADDRESS_BITS | units_of(address);
}

static bool before(const struct block *block, int64_t bytes, int64_t address)
{
    return block->bytes < bytes || (block->bytes == bytes && block->address < address);
}

/* How many of the keys, which are sorted, are smaller. */
static size_t count_smaller(const uint64_t *keys, size_t count, uint64_t key)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* An empty leaf at a position of the order. */
static void insert_leaf(struct free_set *set, size_t position)
{
    uint32_t leaf = set->leaf_spare;

    if (leaf != NO_BLOCK) {
        set->leaf_spare = set->leaves[leaf].next_spare;
    } else {
        array_reserve(set->leaves, set->leaf_capacity, set->leaf_count + 1);
        leaf = set->leaf_count++;
    }
    set->leaves[leaf].count = 0;
    array_reserve(set->order, set->order_capacity, set->order_count + 1);
    array_reserve(set->last, set->last_capacity, set->order_count + 1);
    memmove(set->order + position + 1, set->order + position, (set->order_count - position) * sizeof *set->order);
    memmove(set->last + position + 1, set->last + position, (set->order_count - position) * sizeof *set->last);
    set->order[position] = leaf;
    set->order_count++;
}

static void remove_leaf(struct free_set *set, size_t position)
{
    set->leaves[set->order[position]].next_spare = set->leaf_spare;
    set->leaf_spare = set->order[position];
    set->order_count--;
    memmove(set->order + position, set->order + position + 1, (set->order_count - position) * sizeof *set->order);
    memmove(set->last + position, set->last + position + 1, (set->order_count - position) * sizeof *set->last);
}

static void split_leaf(struct free_set *set, size_t position)
{
    struct free_leaf *full, *rest;

    insert_leaf(set, position + 1);
    full = &set->leaves[set->order[position]];
    rest = &set->leaves[set->order[position + 1]];
    rest->count = full->count / 2;
    full->count -= rest->count;
    memcpy(rest->keys, full->keys + full->count, rest->count * sizeof *rest->keys);
    memcpy(rest->blocks, full->blocks + full->count, rest->count * sizeof *rest->blocks);
    set->last[position + 1] = set->last[position];
    set->last[position] = full->keys[full->count - 1];
}

static void spill(struct free_set *set, uint64_t key, uint32_t number)
{
    size_t position = count_smaller(set->last, set->order_count, key), entry;
    struct free_leaf *leaf;

    if (!set->order_count)
        insert_leaf(set, 0);
    else if (position == set->order_count)
        position--; /* after all others: at the last leaf's end */
    if (set->leaves[set->order[position]].count == LEAF_ENTRIES) {
        split_leaf(set, position);
        position += set->last[position] < key;
    }
    leaf = &set->leaves[set->order[position]];
    entry = count_smaller(leaf->keys, leaf->count, key);
    memmove(leaf->keys + entry + 1, leaf->keys + entry, (leaf->count - entry) * sizeof *leaf->keys);
    memmove(leaf->blocks + entry + 1, leaf->blocks + entry, (leaf->count - entry) * sizeof *leaf->blocks);
    leaf->keys[entry] = key;
    leaf->blocks[entry] = number;
    leaf->count++;
    set->last[position] = leaf->keys[leaf->count - 1];
}

static void unspill(struct free_set *set, uint64_t key)
{
    size_t position = count_smaller(set->last, set->order_count, key);
    struct free_leaf *leaf = &set->leaves[set->order[position]];
    size_t entry = count_smaller(leaf->keys, leaf->count, key);

    leaf->count--;
    memmove(leaf->keys + entry, leaf->keys + entry + 1, (leaf->count - entry) * sizeof *leaf->keys);
    memmove(leaf->blocks + entry, leaf->blocks + entry + 1, (leaf->count - entry) * sizeof *leaf->blocks);
    if (leaf->count)
        set->last[position] = leaf->keys[leaf->count - 1];
    else
        remove_leaf(set, position);
}

static uint32_t best_spilt(const struct free_set *set, int64_t bytes)
{
    uint64_t key = key_of(bytes, 0);
    size_t position = count_smaller(set->last, set->order_count, key);
    const struct free_leaf *leaf;

    if (position == set->order_count)
        return NO_BLOCK;
    leaf = &set->leaves[set->order[position]];
    return leaf->blocks[count_smaller(leaf->keys, leaf->count, key)];
}

static bool is_filled(const struct free_set *set, size_t bin)
{
    return set->filled[bin / 64] >> bin % 64 & 1;
}

/* The first block of the first filled bin from this one on. */
static uint32_t first_from(const struct free_set *set, size_t bin)
{
    size_t word = bin / 64;
    uint64_t bits = bin < FREE_BINS ? set->filled[word] & UINT64_MAX << bin % 64 : 0;

    while (!bits && ++word < FREE_BINS / 64)
        bits = set->filled[word];
    return bits ? set->first[word * 64 + (size_t)__builtin_ctzll(bits)] : NO_BLOCK;
}

void free_set_insert(struct free_set *set, struct block *blocks, uint32_t number)
{
    struct block *block = &blocks[number];
    size_t bin = bin_of(units_of(block->bytes));
    uint32_t previous = NO_BLOCK, next = is_filled(set, bin) ? set->first[bin] : NO_BLOCK;

    block->spilt = set->counts[bin] == BIN_BLOCKS;
    if (block->spilt) {
        spill(set, key_of(block->bytes, block->address), number);
        return;
    }
    while (next != NO_BLOCK && before(&blocks[next], block->bytes, block->address)) {
        previous = next;
        next = blocks[next].free_next;
    }
    block->free_previous = previous;
    block->free_next = next;
    if (next != NO_BLOCK)
        blocks[next].free_previous = number;
    if (previous != NO_BLOCK)
        blocks[previous].free_next = number;
    else
        set->first[bin] = number;
    set->counts[bin]++;
    set->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

void free_set_remove(struct free_set *set, struct block *blocks, uint32_t number)
{
    const struct block *block = &blocks[number];
    size_t bin = bin_of(units_of(block->bytes));

    if (block->spilt) {
        unspill(set, key_of(block->bytes, block->address));
        return;
    }
    if (block->free_next != NO_BLOCK)
        blocks[block->free_next].free_previous = block->free_previous;
    if (block->free_previous != NO_BLOCK)
        blocks[block->free_previous].free_next = block->free_next;
    else
        set->first[bin] = block->free_next;
    if (--set->counts[bin] == 0)
        set->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

uint32_t free_set_best(const struct free_set *set, const struct block *blocks, int64_t bytes)
{
    size_t bin = bin_of(units_of(bytes));
    uint32_t best = is_filled(set, bin) ? set->first[bin] : NO_BLOCK;

    while (best != NO_BLOCK && blocks[best].bytes < bytes)
        best = blocks[best].free_next;
    if (best == NO_BLOCK)
        best = first_from(set, bin + 1);
    if (set->order_count) {
        uint32_t spilt = best_spilt(set, bytes);
        if (best == NO_BLOCK || (spilt != NO_BLOCK && before(&blocks[spilt], blocks[best].bytes, blocks[best].address)))
            best = spilt;
    }
    return best;
}

void free_set_init(struct free_set *set)
{
    memset(set->filled, 0, sizeof set->filled);
    memset(set->counts, 0, sizeof set->counts);
    set->leaves = NULL;
    set->order = NULL;
    set->last = NULL;
    set->leaf_count = set->leaf_capacity = 0;
    set->order_count = set->order_capacity = set->last_capacity = 0;
    set->leaf_spare = NO_BLOCK;
}

void free_set_release(struct free_set *set)
{
    free(set->leaves);
    free(set->order);
    free(set->last);
    free_set_init(set);
}
