#include "sim/heap.h"

#include <stdbool.h>

#include "base/memory.h"
#include "sim/sim_internal.h"

static bool before(const struct sim_run *a, const struct sim_run *b)
{
    return a->event_ns != b->event_ns ? a->event_ns < b->event_ns : a->job < b->job;
}

static void put(struct sim_heap *heap, size_t at, struct sim_run *run)
{
    heap->items[at] = run;
    run->heap_at = at;
}

static void rise(struct sim_heap *heap, struct sim_run *run)
{
    size_t at = run->heap_at;

    while (at > 0 && before(run, heap->items[(at - 1) / 2])) {
        put(heap, at, heap->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(heap, at, run);
}

static void sink(struct sim_heap *heap, struct sim_run *run)
{
    size_t at = run->heap_at;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap->count && before(heap->items[child + 1], heap->items[child]))
            child++;
        if (child >= heap->count || !before(heap->items[child], run))
            break;
        put(heap, at, heap->items[child]);
        at = child;
    }
    put(heap, at, run);
}

struct sim_run *heap_first(const struct sim_heap *heap)
{
    return heap->count ? heap->items[0] : NULL;
}

void heap_add(struct sim_heap *heap, struct sim_run *run)
{
    array_reserve(heap->items, heap->capacity, heap->count + 1);
    put(heap, heap->count++, run);
    rise(heap, run);
}

void heap_remove(struct sim_heap *heap, struct sim_run *run)
{
    struct sim_run *last = heap->items[--heap->count];

    if (last == run)
        return;
    put(heap, run->heap_at, last);
    heap_moved(heap, last);
}

void heap_moved(struct sim_heap *heap, struct sim_run *run)
{
    rise(heap, run);
    sink(heap, run);
}

void heap_release(struct sim_heap *heap)
{
    free(heap->items);
    *heap = (struct sim_heap){0};
}
