/* Arrays of which only some jobs may run at a time (`%N`); of all others there is no struct job_array. That many of its
 * jobs are open: they wait, are kept for other reasons (depend.h), run, or are to be retried; a place is free again at
 * an end or a hold (enter_state), not at a start. The others are kept (core.kept) until an open one has ended or is
 * held; the one with the smallest number goes first. */
#ifndef CARMA_CORE_ARRAY_H
#define CARMA_CORE_ARRAY_H

#include <stdint.h>

#include "base/hash.h"

struct core;
struct job;

struct job_array {
    uint64_t id;   /* of its first job */
    uint32_t most; /* open at a time */
    uint32_t open;
    uint32_t jobs;       /* that have not ended */
    uint64_t next, last; /* none with a number outside these is kept: a cache */
    UT_hash_handle hh;
};

/* The job, which is new or comes from a snapshot, is one of an array's; it counts as open once it has been counted. */
void array_join(struct core *core, struct job *job);
void array_leave(struct core *core, struct job *job);
void array_count(struct job *job);

/* It waits from now on: it is open, or kept. */
void array_admit(struct job *job);

/* It is held from now on, or has ended. */
void array_dismiss(struct job *job);

/* As many as may be open are, after that. Jobs of the array change their queue. */
void array_open(struct core *core, struct job_array *array);

#endif
