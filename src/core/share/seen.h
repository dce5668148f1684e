/* What sharing is seen to cost a running job: how much slower than alone its own reports say that it runs. The speed
 * alone is that of earlier runs of its workload (learn/pairs.h), so a first run shows nothing.
 *
 * A job that is slowed beyond its bound, over the time of a report (some minutes), keeps further jobs off its GPUs.
 * That lasts until a report is within the bound, or its neighbours are others. Only its own user's job says so, and no
 * more is kept from others than by a bound of one's own (--max-slowdown). */
#ifndef CARMA_CORE_SHARE_SEEN_H
#define CARMA_CORE_SHARE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/job.h"
#include "core/record.h"

struct core;
struct gpu;
struct job;

/* A running job's report (RECORD_PROGRESSED). */
void seen_note(struct core *core, struct job *job, const struct record *progressed);

/* How much slower than alone it runs with those who are there now, in permille; 0: not known. */
int32_t seen_slowdown(const struct core *core, const struct job *job);

bool seen_is_beyond_bound(const struct core *core, const struct job *job);

/* Reports that are beyond the bound for so long, from the first of them to the last, move somebody off. */
#define SEEN_MOVES_NS (600 * INT64_C(1000000000))

/* Who has run for less is not moved: it would have little to show for the time that its start took. */
#define SEEN_LEAST_RUN_NS (1800 * INT64_C(1000000000))

/* Whether its last run ended, or will, since it was moved off. */
static inline bool seen_was_moved(const struct job *job)
{
    return job->run->moved_ns && job->run->moved_ns >= job->placed_ns;
}

/* The job that has to leave its GPUs (RECORD_MOVED), since this one has been slowed beyond its bound for SEEN_MOVES_NS:
 * of those on its GPUs the youngest, if it takes that. It takes it once in its life, where it was submitted with a
 * signal and to be requeued, by the user whose job is slowed. NULL: nobody has to. */
const struct job *seen_to_move(const struct core *core, const struct job *slowed);

/* The job on the GPU that is slowed most, of those beyond their bound; NULL: there is none. */
const struct job *seen_beyond_bound(const struct core *core, const struct gpu *gpu);

#endif
