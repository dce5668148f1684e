/* Which waiting jobs a decision looks at: the head, and with backfill those behind it. */
#ifndef CARMA_CORE_BACKFILL_H
#define CARMA_CORE_BACKFILL_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct record_list;

/* Places the jobs that fit, in the order of the queue. True: another pass is due, since a placement has changed which
 * jobs a decision looks at. */
bool backfill_pass(struct core *core, int64_t now_ns, struct record_list *out);

/* Whether a pass may come to a waiting job that is eligible. It may come to the head. With backfill it may also come to
 * all others; in the order of arrival, to the one that has GPUs reserved and to those without a starved job before
 * them, the head apart. */
bool backfill_reaches(const struct core *core, const struct job *job, int64_t now_ns);

#endif
