/* Whose turn is it? The second of the three questions that a decision asks of a waiting job; the others are whether it
 * may be considered (eligible.h) and what it takes (need.h). All waiting jobs stand in one order, by one key. */
#ifndef CARMA_CORE_ORDER_H
#define CARMA_CORE_ORDER_H

#include "core/job.h"

struct core;
struct line;

/* Whether a job that is about to wait goes before the main queue. */
bool order_is_apart(const struct job *job);

/* The job, which is queued or held, gets its turn, and stands in its queue. */
void order_enter(struct core *core, struct job *job);

/* The same of one that stands in one already, which may be another's now. */
void order_moves(struct core *core, struct job *job);

/* The lines in which jobs wait, the first to be served first: the classes before the main queue; then that queue, or,
 * under fair turns, its users: who has nothing running, then who has had the least of the GPUs lately (use.h), then who
 * came first. Valid until the next record is applied, and for one moment. */
struct line **order_lines(const struct core *core, int64_t now_ns, uint32_t *count);

/* The first of the line's jobs behind the turn that is eligible, of those that wait at least since then
 * (job_waits_since_ns), or NULL. */
struct job *order_first(const struct core *core, const struct line *line, struct order_turn behind, int64_t since_ns);

/* The job that is to be placed next, or NULL. Those that are not eligible are passed over. */
struct job *order_head(const struct core *core, int64_t now_ns);

/* How many eligible jobs stand before the waiting one: in the main queue, or, of one before that, apart as it is. */
uint64_t order_ahead(const struct core *core, const struct job *job, int64_t now_ns);

/* The core's own memory of the order. */
void order_begin(struct core *core);
void order_free(struct core *core);

#endif
