/* Whose turn is it? The second of the three questions that a decision asks of a waiting job; the others are whether it
 * may be considered (eligible.h) and what it takes (need.h). All waiting jobs stand in one order, by one key. */
#ifndef CARMA_CORE_ORDER_H
#define CARMA_CORE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/job.h"

struct core;
struct line;

/* Whether a job that is about to wait goes before the main queue. */
bool order_is_apart(const struct job *job);

/* The job, which is queued or held, gets its turn, and stands in its queue. */
void order_enter(struct core *core, struct job *job);

/* The same of one that stands in one already, which may be another's now. */
void order_moves(struct core *core, struct job *job);

/* The job is about to leave those that wait, or its deadline or its begin is about to change. */
void order_forget_times(struct core *core, const struct job *job);

/* The lines in which jobs wait, the first to be served first: the classes before the main queue; then that queue, or,
 * under fair turns, its users: who has nothing running, then whose group, or who, has had the least of the GPUs lately
 * for its share (use.h), then who has so within the group, then who came first. Valid until the next record is applied,
 * and for one moment. */
struct line **order_lines(const struct core *core, int64_t now_ns, uint32_t *count);

/* Of a user's line: the use that is compared first, that of his group, or his own. Valid as order_lines is. */
int64_t order_first_use(const struct line *line);

/* The first of the line's jobs behind the turn that is eligible, of those that wait at least since then
 * (job_waits_since_ns), or NULL. */
struct job *order_first(const struct core *core, const struct line *line, struct order_turn behind, int64_t since_ns);

/* The job that is to be placed next, or NULL. Those that are not eligible are passed over. */
struct job *order_head(const struct core *core, int64_t now_ns);

/* A job in the order in which those that wait would start now if each found room. Users take turns in it: a job counts
 * as running, and as an hour of use, for those behind it. */
struct order_rank {
    struct job *job;    /* its place, from 1 on: job->rank */
    uint64_t own_place; /* the same, among its line's */
    bool runs;          /* its user has something running by then */
    int64_t use;        /* his, by then; 0: all users are in one line */
    int64_t first_use;  /* of his group, or his */
};

/* The waiting job's; NULL: it does not wait, or is not eligible. Valid until the next record is applied, and for one
 * moment, as are the next two, which are asked after it: how many have a rank, and the first of them; under fair
 * turns of another user's, where one stands before the job. */
const struct order_rank *order_rank(const struct core *core, const struct job *job, int64_t now_ns);
uint64_t order_ranked(const struct core *core);
const struct order_rank *order_rank_before(const struct core *core, const struct job *job);

/* The core's own memory of the order. */
void order_begin(struct core *core);
void order_free(struct core *core);

#endif
