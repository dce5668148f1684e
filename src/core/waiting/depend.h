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

/* A job for which others wait, also when it has ended, until all of them know. Owned by it; then by core.tellers. */
struct awaited {
    uint64_t id;
    int64_t started_ns; /* 0: it has not started since somebody waits for that */
    int64_t ended_ns;
    uint32_t ended_as;               /* enum job_state; DEPEND_NO_NEWS: it has not */
    bool gone;                       /* the job is freed */
    bool tells;                      /* it stands in core.tellers */
    struct dependency *dependents;   /* those that do not know: a list, first the ones on its start */
    struct awaited *previous, *next; /* of core.tellers */
};

/* What one job waits for of another. Owned by the job that waits, while it is not told. */
struct dependency {
    struct job *of;                           /* borrowed */
    struct awaited *on;                       /* borrowed */
    uint32_t kind;                            /* enum depends_kind */
    int64_t delay_ns;                         /* of DEPENDS_START */
    struct dependency *previous, *next;       /* of of->depends */
    struct dependency *previous_on, *next_on; /* of on->dependents */
};

/* What it is to be told. */
struct depend_news {
    uint32_t state; /* JOB_RUNNING: it has started; one that has ended; or this: nothing yet */
#define DEPEND_NO_NEWS 0
    int64_t at_ns;
};

struct depend_news depend_news(const struct dependency *dependency);

/* The job, which waits or is held and has not run yet, depends on another, which was submitted before it; or does not
 * begin before a time. It does not stand where it belongs then (order_moves). -EINVAL, -ENOENT. */
int depend_add(struct core *core, struct job *job, const struct record_depends *depends, struct error *err);

/* The job has started, or has ended in this state: those that depended on it go on, or never will (failed_on). Few
 * learn it at once, and depend_tell tells as many of the others (-ENOENT: there are none). */
void depend_started(struct core *core, struct job *job, int64_t at_ns);
void depend_ended(struct core *core, struct job *job, uint32_t state, int64_t at_ns);
int depend_tell(struct core *core, uint32_t most, struct error *err);

/* From a snapshot, behind all jobs: as depend_add, or it is to be told. -EINVAL, -ENOENT. */
int depend_restore(struct core *core, struct job *job, const struct record_state_depends *state, struct error *err);

/* It waits no more. */
void depend_forget(struct job *job);

/* Nor does anybody for it; for any. */
void depend_free(struct core *core, struct job *job);
void depend_free_tellers(struct core *core);

#endif
