/* The events of the running jobs, earliest first: a binary heap of one entry per run, moved in place when its time
 * changes. Equal times go by job, so that a run of the simulator is reproducible. */
#ifndef CARMA_SIM_HEAP_H
#define CARMA_SIM_HEAP_H

#include <stddef.h>

struct sim_run;

struct sim_heap {
    struct sim_run **items; /* owned array of borrowed runs */
    size_t count;
    size_t capacity;
};

struct sim_run *heap_first(const struct sim_heap *heap); /* NULL when empty */
void heap_add(struct sim_heap *heap, struct sim_run *run);
void heap_remove(struct sim_heap *heap, struct sim_run *run);
void heap_moved(struct sim_heap *heap, struct sim_run *run); /* its event_ns has changed */
void heap_release(struct sim_heap *heap);

#endif
