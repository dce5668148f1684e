/* Whose turn is it? The second of the three questions that a decision asks of a waiting job; the others are whether it
 * may be considered (eligible.h) and what it takes (need.h). All waiting jobs stand in one order, by one key. */
#ifndef CARMA_CORE_ORDER_H
#define CARMA_CORE_ORDER_H

#include "core/job.h"

struct core;

/* Whether a job that is about to wait goes before the main queue. */
bool order_is_apart(const struct job *job);

/* The job, which is queued or held, gets its turn, and stands in its queue. */
void order_enter(struct core *core, struct job *job);

/* The job that is to be placed next, or NULL. Those that are not eligible are passed over. */
struct job *order_head(const struct core *core);

/* How many eligible jobs stand before the waiting one: in the main queue, or, of one before that, apart as it is. */
uint64_t order_ahead(const struct core *core, const struct job *job);

#endif
