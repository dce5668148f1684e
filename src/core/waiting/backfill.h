/* Which waiting jobs a decision looks at: the head, and with backfill those behind it. */
#ifndef CARMA_CORE_BACKFILL_H
#define CARMA_CORE_BACKFILL_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct record_list;

/* Places what fits, in the order of the queue. True where that has changed who is to be looked at: another pass is due.
 */
bool backfill_pass(struct core *core, int64_t now_ns, struct record_list *out);

/* Whether a pass may come to a waiting job that no limit of its user's keeps: it is the head, or there is backfill and
 * no starved job before it, the head apart. */
bool backfill_reaches(const struct core *core, const struct job *job, int64_t now_ns);

#endif
