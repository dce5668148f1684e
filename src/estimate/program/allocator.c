#include "estimate/program/allocator.h"

#include "base/memory.h"

#define SMALL_BYTES          (INT64_C(1) << 20) /* the largest request served by the pool of small blocks */
#define SMALL_SEGMENT_BYTES  (INT64_C(2) << 20)
#define MIDDLE_BYTES         (INT64_C(10) << 20) /* requests below it come from a segment that others share */
#define MIDDLE_SEGMENT_BYTES (INT64_C(20) << 20)
#define SEGMENT_ROUND_BYTES  (INT64_C(2) << 20)
#define DRIVER_PIECE_BYTES   (INT64_C(32) << 20)         /* of cudaMallocAsync's pool: assumed */
#define SMALL_POOL_ADDRESS   (BLOCK_ADDRESSES_BYTES / 2) /* of an expandable segment; the large pool's begins at 0 */

static int64_t round_up(int64_t bytes, int64_t to)
{
    return (bytes + to - 1) / to * to;
}

static struct free_set *pool_of(struct allocator *allocator, uint32_t number)
{
    return &allocator->free[allocator->blocks[number].small];
}

static uint32_t new_block(struct allocator *allocator, struct block block)
{
    uint32_t number = allocator->block_spare;

    if (number != NO_BLOCK) {
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

static bool is_segment(const struct block *block)
{
    return block->previous == NO_BLOCK && block->next == NO_BLOCK;
}

/* Into its pool, and out of it. */
static void put_back(struct allocator *allocator, uint32_t number)
{
    struct block *block = &allocator->blocks[number];

    if (is_segment(block) && !allocator->settings.expandable) {
        array_reserve(allocator->idle, allocator->idle_capacity, allocator->idle_count + 1);
        block->idle = (uint32_t)allocator->idle_count;
        allocator->idle[allocator->idle_count++] = number;
    }
    free_set_insert(pool_of(allocator, number), allocator->blocks, number);
}

static void take_out(struct allocator *allocator, uint32_t number)
{
    const struct block *block = &allocator->blocks[number];

    free_set_remove(pool_of(allocator, number), allocator->blocks, number);
    if (is_segment(block) && !allocator->settings.expandable) {
        uint32_t last = allocator->idle[--allocator->idle_count];
        allocator->idle[block->idle] = last;
        allocator->blocks[last].idle = block->idle;
    }
}

/* Segments that are free as a whole go back, until no more than so many bytes are reserved. */
static void release_segments(struct allocator *allocator, int64_t until_bytes)
{
    while (allocator->idle_count && allocator->reserved_bytes > until_bytes) {
        uint32_t number = allocator->idle[allocator->idle_count - 1];
        allocator->reserved_bytes -= allocator->blocks[number].bytes;
        allocator->segments--;
        allocator->segments_released++;
        take_out(allocator, number);
        drop_block(allocator, number);
    }
}

/* Of the pool's one segment: its last block grows where it is free, and one follows where it is not. */
static uint32_t grow(struct allocator *allocator, int64_t bytes, bool small, bool must)
{
    uint32_t tail = allocator->tail[small], number;
    struct block *last = tail == NO_BLOCK ? NULL : &allocator->blocks[tail];
    int64_t have_bytes = last && !last->used ? last->bytes : 0;
    int64_t more_bytes = round_up(bytes - have_bytes, small ? SMALL_SEGMENT_BYTES : MIDDLE_SEGMENT_BYTES);
    bool full = false;
    int64_t end = last ? last->address + last->bytes : small ? SMALL_POOL_ADDRESS : 0;

    if (allocator->limit_bytes > 0 && allocator->reserved_bytes + more_bytes > allocator->limit_bytes) {
        full = true;
        allocator->reserved_bytes = allocator->allocated_bytes;
        allocator->segments_released++;
        if (allocator->reserved_bytes + bytes > allocator->limit_bytes) {
            if (!must)
                return NO_BLOCK;
            allocator->out_of_memory = true;
        }
    }
    if (more_bytes > BLOCK_ADDRESSES_BYTES / 2 - (small ? end - SMALL_POOL_ADDRESS : end)) {
        allocator->out_of_memory = true;
        return NO_BLOCK;
    }
    allocator->reserved_bytes += full ? bytes : more_bytes; /* what is not asked for stays with the GPU */
    if (allocator->reserved_bytes > allocator->peak_reserved_bytes)
        allocator->peak_reserved_bytes = allocator->reserved_bytes;
    if (have_bytes) {
        take_out(allocator, tail);
        allocator->blocks[tail].bytes += more_bytes;
        return tail;
    }
    number = new_block(
        allocator,
        (struct block){.address = end, .bytes = more_bytes, .previous = tail, .next = NO_BLOCK, .small = small});
    if (tail != NO_BLOCK)
        allocator->blocks[tail].next = number;
    allocator->tail[small] = number;
    return number;
}

/* Its one block, in no pool yet. */
static uint32_t new_segment(struct allocator *allocator, int64_t bytes, bool small, bool must)
{
    int64_t segment_bytes = small                  ? SMALL_SEGMENT_BYTES
                            : bytes < MIDDLE_BYTES ? MIDDLE_SEGMENT_BYTES
                                                   : round_up(bytes, SEGMENT_ROUND_BYTES);
    struct block block = {.address = allocator->next_address,
                          .bytes = segment_bytes,
                          .previous = NO_BLOCK,
                          .next = NO_BLOCK,
                          .small = small};

    if (allocator->limit_bytes > 0 && allocator->settings.most_permille && allocator->settings.collects_permille)
        release_segments(allocator, allocator->limit_bytes / 1000 * allocator->settings.collects_permille);
    if (allocator->limit_bytes > 0 && allocator->reserved_bytes + segment_bytes > allocator->limit_bytes) {
        release_segments(allocator, 0);
        if (allocator->reserved_bytes + segment_bytes > allocator->limit_bytes) {
            if (!must)
                return NO_BLOCK;
            allocator->out_of_memory = true;
        }
    }
    if (segment_bytes > BLOCK_ADDRESSES_BYTES - allocator->next_address) {
        allocator->out_of_memory = true;
        return NO_BLOCK;
    }
    allocator->next_address += segment_bytes; /* the driver's addresses grow */
    allocator->segments++;
    allocator->reserved_bytes += segment_bytes;
    if (allocator->reserved_bytes > allocator->peak_reserved_bytes)
        allocator->peak_reserved_bytes = allocator->reserved_bytes;
    return new_block(allocator, block);
}

static bool is_kept_apart(const struct allocator *allocator, int64_t bytes)
{
    return allocator->settings.unsplit_bytes && bytes >= allocator->settings.unsplit_bytes;
}

/* A block that is kept apart serves only requests that are, and nearly as large. */
static bool may_serve(const struct allocator *allocator, uint32_t number, int64_t bytes)
{
    int64_t have_bytes = allocator->blocks[number].bytes;

    return is_kept_apart(allocator, bytes) ? have_bytes < bytes + MIDDLE_SEGMENT_BYTES
                                           : !is_kept_apart(allocator, have_bytes);
}

static void split_block(struct allocator *allocator, uint32_t number, int64_t bytes)
{
    struct block *block = &allocator->blocks[number];
    int64_t rest_bytes = block->bytes - bytes;
    uint32_t rest, next = block->next;

    if (block->small || allocator->settings.expandable ? rest_bytes < BLOCK_ROUND_BYTES
                                                       : rest_bytes <= SMALL_BYTES || is_kept_apart(allocator, bytes))
        return;
    rest = new_block(allocator, (struct block){.address = block->address + bytes,
                                               .bytes = rest_bytes,
                                               .previous = number,
                                               .next = next,
                                               .small = block->small});
    if (next != NO_BLOCK)
        allocator->blocks[next].previous = rest;
    else
        allocator->tail[allocator->blocks[number].small] = rest;
    block = &allocator->blocks[number]; /* they may have moved */
    block->next = rest;
    block->bytes = bytes;
    put_back(allocator, rest);
}

/* What was free when the limit was reached has gone back, and is taken from the GPU again when it is used. */
static void map_again(struct allocator *allocator)
{
    if (allocator->reserved_bytes >= allocator->allocated_bytes)
        return;
    allocator->reserved_bytes = allocator->allocated_bytes;
    if (allocator->reserved_bytes > allocator->peak_reserved_bytes)
        allocator->peak_reserved_bytes = allocator->reserved_bytes;
    if (allocator->limit_bytes > 0 && allocator->reserved_bytes > allocator->limit_bytes)
        allocator->out_of_memory = true;
}

/* Of the driver's pool. Where the limit is reached, what is free in it goes back to the GPU. */
static uint32_t take_of_driver(struct allocator *allocator, int64_t bytes, bool must)
{
    int64_t need_bytes = round_up(allocator->allocated_bytes + bytes, DRIVER_PIECE_BYTES);

    if (allocator->limit_bytes > 0 && need_bytes > allocator->limit_bytes) {
        if (allocator->allocated_bytes + bytes > allocator->limit_bytes) {
            if (!must)
                return NO_BLOCK;
            allocator->out_of_memory = true;
        }
        need_bytes = allocator->allocated_bytes + bytes;
    }
    if (need_bytes > allocator->reserved_bytes)
        allocator->reserved_bytes = need_bytes;
    if (allocator->reserved_bytes > allocator->peak_reserved_bytes)
        allocator->peak_reserved_bytes = allocator->reserved_bytes;
    return new_block(allocator, (struct block){.bytes = bytes, .previous = NO_BLOCK, .next = NO_BLOCK});
}

static uint32_t take_of_pool(struct allocator *allocator, int64_t bytes, bool must)
{
    bool small = bytes <= SMALL_BYTES;
    uint32_t number = free_set_best(&allocator->free[small], allocator->blocks, bytes);

    if (number != NO_BLOCK && may_serve(allocator, number, bytes))
        take_out(allocator, number);
    else if (allocator->settings.expandable)
        number = grow(allocator, bytes, small, must);
    else
        number = new_segment(allocator, bytes, small, must);
    if (number != NO_BLOCK)
        split_block(allocator, number, bytes);
    return number;
}

static uint32_t take(struct allocator *allocator, int64_t bytes, bool must)
{
    uint32_t number;

    bytes = round_up(bytes, BLOCK_ROUND_BYTES);
    number = allocator->settings.driver ? take_of_driver(allocator, bytes, must) : take_of_pool(allocator, bytes, must);
    if (number == NO_BLOCK)
        return NO_BLOCK;
    allocator->blocks[number].used = true;
    allocator->allocated_bytes += allocator->blocks[number].bytes;
    if (allocator->settings.expandable)
        map_again(allocator);
    if (allocator->allocated_bytes > allocator->peak_allocated_bytes)
        allocator->peak_allocated_bytes = allocator->allocated_bytes;
    return number;
}

uint32_t allocator_take(struct allocator *allocator, int64_t bytes)
{
    return take(allocator, bytes, true);
}

uint32_t allocator_try(struct allocator *allocator, int64_t bytes)
{
    return take(allocator, bytes, false);
}

/* Takes the free block that follows into the one before it. */
static void merge(struct allocator *allocator, uint32_t number, uint32_t following)
{
    struct block *block = &allocator->blocks[number];
    const struct block *gone = &allocator->blocks[following];

    block->bytes += gone->bytes;
    block->next = gone->next;
    if (gone->next != NO_BLOCK)
        allocator->blocks[gone->next].previous = number;
    else
        allocator->tail[block->small] = number;
    drop_block(allocator, following);
}

static bool is_free(const struct allocator *allocator, uint32_t number)
{
    return number != NO_BLOCK && !allocator->blocks[number].used;
}

void allocator_give(struct allocator *allocator, uint32_t number)
{
    struct block *block = &allocator->blocks[number];
    uint32_t previous = block->previous, next = block->next;

    allocator->allocated_bytes -= block->bytes;
    block->used = false;
    if (allocator->settings.driver) {
        drop_block(allocator, number);
        return;
    }
    if (is_free(allocator, next)) {
        take_out(allocator, next);
        merge(allocator, number, next);
    }
    if (is_free(allocator, previous)) {
        take_out(allocator, previous);
        merge(allocator, previous, number);
        number = previous;
    }
    put_back(allocator, number);
}

void allocator_init(struct allocator *allocator, int64_t limit_bytes)
{
    *allocator = (struct allocator){.limit_bytes = limit_bytes, .block_spare = NO_BLOCK, .tail = {NO_BLOCK, NO_BLOCK}};
    free_set_init(&allocator->free[false]);
    free_set_init(&allocator->free[true]);
}

void allocator_empty_cache(struct allocator *allocator)
{
    uint64_t released = allocator->segments_released; /* which counts only forced ones */

    if (allocator->settings.expandable || allocator->settings.driver)
        allocator->reserved_bytes = allocator->allocated_bytes;
    else
        release_segments(allocator, 0);
    allocator->segments_released = released;
}

void allocator_release(struct allocator *allocator)
{
    free_set_release(&allocator->free[false]);
    free_set_release(&allocator->free[true]);
    free(allocator->blocks);
    free(allocator->idle);
    *allocator = (struct allocator){0};
}
