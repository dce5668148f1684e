/* The promises of the core, each of which fails the world that sees it broken. */
#ifndef CARMA_TESTS_PROMISES_H
#define CARMA_TESTS_PROMISES_H

#include "world.h"

void on_decision(struct world *world, const struct record *record);             /* which the world carries out */
void check_state(struct world *world);                                          /* after the decisions on an input */
bool is_among_reserved(const struct world *world, const struct world_job *job); /* now, on a GPU that is for others */

/* promises_depends.c: the jobs on which a job depends, and times */
void depend(struct world *world, uint64_t id);
bool is_met(const struct world *world, uint64_t id);
void check_depends(const struct world *world, const struct job *job, uint32_t code);
void check_array(const struct world *world, const struct job *job);
void check_refused(const struct world *world, const struct record *record);

/* promises_users.c: the limits of each user */
void check_host(const struct world *world);
void check_limits(const struct world *world, const struct record_submitted *wants);
void check_limited(const struct world *world, const struct job *job, uint32_t code);
void count_retry(struct world *world, uint32_t uid, int64_t at_ns);
bool has_retries_left(const struct world *world, uint32_t uid, int64_t at_ns);

#endif
