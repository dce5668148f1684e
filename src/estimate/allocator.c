#include "estimate/allocator.h"

#include <string.h>

#include "base/memory.h"

#define ROUND_BYTES         INT64_C(512)
#define SMALL_BYTES         (INT64_C(1) << 20) /* the largest request served by the pool of small blocks */
#define SMALL_SEGMENT_BYTES (INT64_C(2) << 20)
#define MIDDLE_BYTES        (INT64_C(10) << 20) /* requests below it come from a segment that others share */
#define MIDDLE_SEGMENT_BYTES (INT64_C(20) << 20)
#define SEGMENT_ROUND_BYTES (INT64_C(2) << 20)
#define LEAF_ENTRIES        64

struct free_leaf {
    uint32_t count, next_spare;
    struct free_block entries[LEAF_ENTRIES];
};

static int64_t round_up(int64_t bytes, int64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Whether the entry stands before (bytes, address). */
static bool before(const struct free_block *entry, int64_t bytes, int64_t address)
{
    return entry->bytes < bytes || (entry->bytes == bytes && entry->address < address);
}

static struct free_leaf *leaf_at(const struct free_set *set, size_t position)
{
    return &set->leaves[set->order[position]];
}

/* The first leaf whose last entry does not stand before (bytes, address); order_count where there is none. */
static size_t find_leaf(const struct free_set *set, int64_t bytes, int64_t address)
{
    size_t low = 0, high = set->order_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct free_leaf *leaf = leaf_at(set, middle);
        if (before(&leaf->entries[leaf->count - 1], bytes, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t find_entry(const struct free_leaf *leaf, int64_t bytes, int64_t address)
{
    uint32_t low = 0, high = leaf->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (before(&leaf->entries[middle], bytes, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* An empty leaf at a position of the order. */
static void insert_leaf(struct free_set *set, size_t position)
{
    uint32_t leaf = set->leaf_spare;

    if (leaf != ALLOCATOR_NO_BLOCK) {
        set->leaf_spare = set->leaves[leaf].next_spare;
    } else {
        array_reserve(set->leaves, set->leaf_capacity, set->leaf_count + 1);
        leaf = set->leaf_count++;
    }
    set->leaves[leaf].count = 0;
    array_reserve(set->order, set->order_capacity, set->order_count + 1);
    memmove(set->order + position + 1, set->order + position, (set->order_count - position) * sizeof *set->order);
    set->order[position] = leaf;
    set->order_count++;
}

static void remove_leaf(struct free_set *set, size_t position)
{
    leaf_at(set, position)->next_spare = set->leaf_spare;
    set->leaf_spare = set->order[position];
    set->order_count--;
    memmove(set->order + position, set->order + position + 1, (set->order_count - position) * sizeof *set->order);
}

static void split_leaf(struct free_set *set, size_t position)
{
    struct free_leaf *full, *rest;

    insert_leaf(set, position + 1);
    full = leaf_at(set, position);
    rest = leaf_at(set, position + 1);
    rest->count = full->count / 2;
    full->count -= rest->count;
    memcpy(rest->entries, full->entries + full->count, rest->count * sizeof *rest->entries);
}

static void remove_entry(struct free_set *set, size_t position, uint32_t entry)
{
    struct free_leaf *leaf = leaf_at(set, position);

    leaf->count--;
    memmove(leaf->entries + entry, leaf->entries + entry + 1, (leaf->count - entry) * sizeof *leaf->entries);
    if (!leaf->count)
        remove_leaf(set, position);
}

static void insert_free(struct allocator *allocator, uint32_t number)
{
    const struct block *block = &allocator->blocks[number];
    struct free_set *set = &allocator->free[block->small];
    size_t position = find_leaf(set, block->bytes, block->address);
    struct free_leaf *leaf;
    uint32_t entry;

    if (position == set->order_count && position)
        position--; /* after all others: at the last leaf's end */
    if (!set->order_count)
        insert_leaf(set, 0);
    if (leaf_at(set, position)->count == LEAF_ENTRIES) {
        split_leaf(set, position);
        leaf = leaf_at(set, position);
        position += before(&leaf->entries[leaf->count - 1], block->bytes, block->address);
    }
    leaf = leaf_at(set, position);
    entry = find_entry(leaf, block->bytes, block->address);
    memmove(leaf->entries + entry + 1, leaf->entries + entry, (leaf->count - entry) * sizeof *leaf->entries);
    leaf->entries[entry] = (struct free_block){block->bytes, block->address, number};
    leaf->count++;
}

static void remove_free(struct allocator *allocator, uint32_t number)
{
    const struct block *block = &allocator->blocks[number];
    struct free_set *set = &allocator->free[block->small];
    size_t position = find_leaf(set, block->bytes, block->address);

    remove_entry(set, position, find_entry(leaf_at(set, position), block->bytes, block->address));
}

/* Out of its pool: the smallest free block that is large enough, at the lowest address; ALLOCATOR_NO_BLOCK. */
static uint32_t take_best(struct allocator *allocator, int64_t bytes, bool small)
{
    struct free_set *set = &allocator->free[small];
    size_t position = find_leaf(set, bytes, INT64_MIN);
    uint32_t entry, number;

    if (position == set->order_count)
        return ALLOCATOR_NO_BLOCK;
    entry = find_entry(leaf_at(set, position), bytes, INT64_MIN);
    number = leaf_at(set, position)->entries[entry].block;
    remove_entry(set, position, entry);
    return number;
}

static uint32_t new_block(struct allocator *allocator, struct block block)
{
    uint32_t number = allocator->block_spare;

    if (number != ALLOCATOR_NO_BLOCK) {
        allocator->block_spare = allocator->blocks[number].next;
    } else {
        array_reserve(allocator->blocks, allocator->block_capacity, allocator->block_count + 1);
        number = (uint32_t)allocator->block_count++;
    }
    allocator->blocks[number] = block;
    return number;
}

static void drop_block(struct allocator *allocator, uint32_t number)
{
    allocator->blocks[number].next = allocator->block_spare;
    allocator->block_spare = number;
}

/* cudaMalloc has failed: every segment that is free as a whole goes back. */
static void release_segments(struct allocator *allocator, struct free_set *set)
{
    size_t kept_leaves = 0;

    for (size_t i = 0; i < set->order_count; i++) {
        struct free_leaf *leaf = leaf_at(set, i);
        uint32_t kept = 0;
        for (uint32_t k = 0; k < leaf->count; k++) {
            const struct free_block *entry = &leaf->entries[k];
            const struct block *block = &allocator->blocks[entry->block];
            if (block->previous != ALLOCATOR_NO_BLOCK || block->next != ALLOCATOR_NO_BLOCK) {
                leaf->entries[kept++] = *entry;
                continue;
            }
            allocator->reserved_bytes -= entry->bytes;
            allocator->segments--;
            allocator->segments_released++;
            drop_block(allocator, entry->block);
        }
        leaf->count = kept;
        if (kept) {
            set->order[kept_leaves++] = set->order[i];
        } else {
            leaf->next_spare = set->leaf_spare;
            set->leaf_spare = set->order[i];
        }
    }
    set->order_count = kept_leaves;
}

static uint32_t new_segment(struct allocator *allocator, int64_t bytes, bool small)
{
    int64_t segment_bytes = small                  ? SMALL_SEGMENT_BYTES
                            : bytes < MIDDLE_BYTES ? MIDDLE_SEGMENT_BYTES
                                                   : round_up(bytes, SEGMENT_ROUND_BYTES);
    struct block block = {.address = allocator->next_address,
                          .bytes = segment_bytes,
                          .previous = ALLOCATOR_NO_BLOCK,
                          .next = ALLOCATOR_NO_BLOCK,
                          .small = small};

    if (allocator->limit_bytes > 0 && allocator->reserved_bytes + segment_bytes > allocator->limit_bytes) {
        release_segments(allocator, &allocator->free[true]);
        release_segments(allocator, &allocator->free[false]);
        if (allocator->reserved_bytes + segment_bytes > allocator->limit_bytes)
            allocator->out_of_memory = true;
    }
    allocator->next_address += segment_bytes; /* the driver's addresses grow */
    allocator->segments++;
    allocator->reserved_bytes += segment_bytes;
    if (allocator->reserved_bytes > allocator->peak_reserved_bytes)
        allocator->peak_reserved_bytes = allocator->reserved_bytes;
    return new_block(allocator, block);
}

static void split_block(struct allocator *allocator, uint32_t number, int64_t bytes)
{
    struct block *block = &allocator->blocks[number];
    int64_t rest_bytes = block->bytes - bytes;
    uint32_t rest, next = block->next;

    if (block->small ? rest_bytes < ROUND_BYTES : rest_bytes <= SMALL_BYTES)
        return;
    rest = new_block(allocator, (struct block){.address = block->address + bytes,
                                               .bytes = rest_bytes,
                                               .previous = number,
                                               .next = next,
                                               .small = block->small});
    if (next != ALLOCATOR_NO_BLOCK)
        allocator->blocks[next].previous = rest;
    block = &allocator->blocks[number]; /* they may have moved */
    block->next = rest;
    block->bytes = bytes;
    insert_free(allocator, rest);
}

uint32_t allocator_take(struct allocator *allocator, int64_t bytes)
{
    bool small;
    uint32_t number;

    bytes = round_up(bytes, ROUND_BYTES);
    small = bytes <= SMALL_BYTES;
    number = take_best(allocator, bytes, small);
    if (number == ALLOCATOR_NO_BLOCK)
        number = new_segment(allocator, bytes, small);
    split_block(allocator, number, bytes);
    allocator->blocks[number].used = true;
    allocator->allocated_bytes += allocator->blocks[number].bytes;
    if (allocator->allocated_bytes > allocator->peak_allocated_bytes)
        allocator->peak_allocated_bytes = allocator->allocated_bytes;
    return number;
}

/* Takes the free block that follows into the one before it. */
static void merge(struct allocator *allocator, uint32_t number, uint32_t following)
{
    struct block *block = &allocator->blocks[number];
    const struct block *gone = &allocator->blocks[following];

    block->bytes += gone->bytes;
    block->next = gone->next;
    if (gone->next != ALLOCATOR_NO_BLOCK)
        allocator->blocks[gone->next].previous = number;
    drop_block(allocator, following);
}

void allocator_give(struct allocator *allocator, uint32_t number)
{
    struct block *block = &allocator->blocks[number];
    uint32_t previous = block->previous, next = block->next;

    allocator->allocated_bytes -= block->bytes;
    block->used = false;
    if (next != ALLOCATOR_NO_BLOCK && !allocator->blocks[next].used) {
        remove_free(allocator, next);
        merge(allocator, number, next);
    }
    if (previous != ALLOCATOR_NO_BLOCK && !allocator->blocks[previous].used) {
        remove_free(allocator, previous);
        merge(allocator, previous, number);
        number = previous;
    }
    insert_free(allocator, number);
}

void allocator_init(struct allocator *allocator, int64_t limit_bytes)
{
    *allocator = (struct allocator){.limit_bytes = limit_bytes, .block_spare = ALLOCATOR_NO_BLOCK};
    allocator->free[0].leaf_spare = allocator->free[1].leaf_spare = ALLOCATOR_NO_BLOCK;
}

void allocator_release(struct allocator *allocator)
{
    for (int i = 0; i < 2; i++) {
        free(allocator->free[i].leaves);
        free(allocator->free[i].order);
    }
    free(allocator->blocks);
    *allocator = (struct allocator){0};
}
