/* Jobs that hold GPUs and do not use them: warned twice, then ended (RECORD_IDLE). Whether a job uses its GPUs is
 * measured, and an input (RECORD_UNUSED); how long it may not is its wish (--idle-limit).
 *
 *   unused since    + 1/2 of the limit    + 9/10        + all of it
 *        |                  |                |              |
 *        |               warned         warned again      ended
 *
 * Use in between begins all of that anew. A step that is late, as the daemon was not there, puts off those behind it:
 * from a warning on, a job has the time to act that the warning tells. One that is suspended cannot use its GPUs, and
 * is not idle. */
#ifndef CARMA_CORE_IDLE_H
#define CARMA_CORE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "core/record.h"

struct core;
struct job;

/* An UNUSED and an IDLE are applied. */
int idle_note(struct core *core, struct job *job, const struct record *unused, struct error *err);
int idle_take_step(struct job *job, const struct record_idle *idle, struct error *err);

/* The job uses its GPUs, or cannot. One that is to end for it stays so while it has them. */
void idle_forget(struct job *job);

/* When its next step is due; INT64_MAX: none is. */
int64_t idle_due_ns(const struct job *job);

/* That step, at a time when it is due. */
struct record_idle idle_next_step(const struct job *job, int64_t now_ns);

#endif
