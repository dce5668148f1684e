/* GPUs that an administrator allots to users from a time to another: "reserved for ada", as people are told. From its
 * beginning to its end no other user's jobs are placed on them. Before it, a job of another comes to them only where it
 * ends by its time limit before the beginning: of one without a limit nobody knows when. What runs there runs on to its
 * end: nothing is ended for an allotment; only a job that was suspended there is not resumed meanwhile. It takes
 * nothing from its users: their jobs come to these GPUs before it, too, and to all others.
 *
 * A job that only allotments keep from enough GPUs is not eligible (waiting/eligible.h): it holds up nobody.
 *
 * Time changes the answers: they are as of core->allotted_ns, the time of the latest record about allotments. The
 * decision ALLOTMENTS_DUE sets it when an answer turns, and drops those that are over. */
#ifndef CARMA_CORE_GPUS_ALLOTMENT_H
#define CARMA_CORE_GPUS_ALLOTMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/units.h"

struct core;
struct gpu;
struct job;
struct reason;
struct record;
struct record_allotted;

#define ALLOTMENTS_MOST    64
#define ALLOTMENT_MOST_NS  (INT64_C(366) * 86400 * NS_PER_SEC)     /* from its beginning to its end */
#define ALLOTMENT_AHEAD_NS (INT64_C(5) * 366 * 86400 * NS_PER_SEC) /* from now to its beginning */

/* Those that are not over, in the order of their numbers; borrowed until the next record. */
const struct record_allotted *core_allotments(const struct core *core, uint32_t *count);

/* The number of the next one: none is given twice. */
uint32_t core_next_allotment(const struct core *core);

/* GPUS_ALLOTTED, ALLOTMENT_ENDED, ALLOTMENTS_DUE. */
int allotment_apply(struct core *core, const struct record *record, struct error *err);

/* One of a snapshot. */
int allotment_restore(struct core *core, const struct record_allotted *allotted, struct error *err);

/* Which keeps the job off the GPU; NULL: none does. */
const struct record_allotted *allotment_against(const struct core *core, const struct job *job, const struct gpu *gpu);

/* Whether they alone leave the job too few GPUs; *why then has the numbers of the first of them to end. */
bool allotment_keeps(const struct core *core, const struct job *job, struct reason *why);

/* The numbers of the one that keeps the job off the GPU, as a reason. */
void allotment_note(const struct core *core, const struct job *job, const struct gpu *gpu, struct reason *reason);

/* Whether one that has begun, for others, is of a GPU that the job has: it goes on there, but is not resumed if it is
 * suspended. *why then has the numbers. Slurm resumes its own, and is not asked. */
bool allotment_keeps_still(const struct core *core, const struct job *job, int64_t now_ns, struct reason *why);

/* When an answer may turn next by time alone, or one begins or is over: behind core->allotted_ns; INT64_MAX: never. */
int64_t allotment_next_ns(const struct core *core);

#endif
