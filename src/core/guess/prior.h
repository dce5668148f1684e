/* The likely GPU memory of a job of unknown need: the distribution over its user's completed workloads. It begins with
 * a published one. The figures of other users are folded in (base/fold.h). Other workloads of its program come on top
 * (program_history.h). Integers only.
 *
 * Each workload counts once, with the memory of its first completed run. A job of a workload with history never asks,
 * so the question is always about a new one. The published distribution counts as a hundred workloads. Once two hundred
 * more have been counted, the older ones fade. Workloads larger than the largest GPU do not count while there is
 * no larger one: such a job could not run here. A run that met its fence does not count: it may need more. What others
 * are told is a distribution of its own: it lacks runs under a minute, which cost nothing to make.
 *
 * A job of unknown need requests the quantile `prior_quantile`. It may use more or less than that:
 *   - by MPS it may use all unreserved memory of its GPU, up to the careful quantile, its fence (core/need/fence.h). A
 * job that needs more runs itself out of memory. That is not charged, and its need is then known
 *   - without a fence it starts beside others only where the careful quantile is free
 *   - where it started, nobody follows until its memory was observed and has settled */
#ifndef CARMA_CORE_PRIOR_H
#define CARMA_CORE_PRIOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

struct core;
struct gpu;
struct job;
struct user;

#define PRIOR_WORKLOAD_PARTS   100 /* weight of one workload in its bin */
#define PRIOR_CAREFUL_PERMILLE 980 /* as `estimate_quantile` is by default */

/* Of one user's workloads, or the one with which each user begins: the published one, or that of all users which an
 * earlier carma has left. */
struct prior {
    uint32_t parts[PRIOR_BINS];
    /* Caches, not state: */
    int64_t likely_bytes;  /* the quantile `prior_quantile` */
    int64_t careful_bytes; /* the careful one */
};

#define PRIOR_TELLS_NS (60 * INT64_C(1000000000)) /* a shorter run tells other users nothing */

void prior_init(struct prior *prior);

/* The configuration, the largest GPU, a user or a user's distribution is another. */
void prior_refresh(struct core *core);

/* A run of the job has completed at at_ns, with so much memory on a GPU: before the workload learns of it. */
void prior_completed(struct core *core, const struct job *job, int64_t bytes, int64_t at_ns);

/* Takes back what prior_completed learned: of one workload, as far as that has not faded; of the user. The caller
 * refreshes. */
void prior_take_back(struct prior *prior, int64_t bytes);
void prior_forget(struct user *user);

/* The user's own distribution. */
const struct prior *prior_of(const struct core *core, const struct user *user);

/* The number of bins for workloads on a GPU of this size; the bin of a need; the quantile of needs with such weights.
 */
uint32_t prior_bins(int64_t largest_bytes);
uint32_t prior_bin(int64_t bytes);
int64_t prior_weighted_quantile(const int64_t *weights, int64_t permille, int64_t largest_bytes);

/* A request of a job of unknown need on each GPU, of which likely_bytes are enough; -1: whole GPUs. Never more than a
 * GPU has, or its user may have. */
int64_t prior_request(const struct core *core, const struct record_submitted *wants, int64_t likely_bytes);

/* Whether these parts can be a distribution. */
bool prior_is_sane(const uint32_t *parts, uint32_t count);

#endif
