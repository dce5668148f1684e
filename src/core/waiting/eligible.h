/* May a waiting job be considered now? The first of the three questions that a decision asks of it; the others are
 * whose turn it is (order.h) and what it takes (need.h). A job that is kept is as if it were not there: nobody waits
 * for it, and no GPUs are reserved for it. */
#ifndef CARMA_CORE_ELIGIBLE_H
#define CARMA_CORE_ELIGIBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/reason.h"

struct core;
struct job;
struct record_submitted;

/* Whether no rule keeps the job, which is held or queued. If one does, *why (may be NULL) says which, with its numbers.
 */
bool job_is_eligible(const struct core *core, const struct job *job, struct reason *why);

/* Whether such a submission could be eligible while its user has nothing else; if not, it can never run. */
bool ever_eligible(const struct core *core, const struct record_submitted *wants, struct reason *why);

/* Whether a record of this type may turn the answer for a job in the queue: it may wake one that was kept, or keep one.
 */
bool eligible_turns(const struct core *core, uint32_t type);

#endif
