/* Jobs that wait for something else than GPUs: for the start or the end of other jobs, or for a time. Such a job is not
 * eligible, and stands in core.kept, away from those among which a decision searches; so it costs a decision nothing.
 * Its place in the queue is that of its submission. */
#ifndef CARMA_CORE_DEPEND_H
#define CARMA_CORE_DEPEND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

struct core;
struct error;
struct job;

/* What one job waits for of another. Owned by the job that waits, while it is not so yet. */
struct dependency {
    struct job *of, *on;                      /* borrowed */
    uint32_t kind;                            /* enum depends_kind */
    int64_t delay_ns;                         /* of DEPENDS_START */
    struct dependency *previous, *next;       /* of of->depends */
    struct dependency *previous_on, *next_on; /* of on->dependents */
};

/* The job, which waits or is held and has not run yet, depends on another, which was submitted before it; or does not
 * begin before a time. It does not stand where it belongs then (order_moves). -EINVAL, -ENOENT. */
int depend_add(struct core *core, struct job *job, const struct record_depends *depends, struct error *err);

/* The job that was to begin first begins later now: the next time is found anew (core.next_begin_ns). */
void depend_find_next_begin(struct core *core);

/* Another job has started, or has ended in this state: those that depended on it go on, or never will (failed_on). */
void depend_started(struct core *core, struct job *on, int64_t at_ns);
void depend_ended(struct core *core, struct job *on, uint32_t state, int64_t at_ns);

/* It waits no more. */
void depend_forget(struct job *job);

/* Nor does anybody for it. */
void depend_free(struct job *job);

#endif
