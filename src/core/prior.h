/* How much GPU memory a job of unknown need is likely to use: the distribution over the workloads that this server has
 * completed, begun with a published one. Integers only.
 *
 * Each workload counts once, with the memory of its first completed run: a job of a workload with history never asks,
 * so the question is always about a new one. The published distribution counts as a hundred workloads, and once two
 * hundred more have been counted the older ones fade. Workloads larger than the largest GPU do not count while there is
 * no larger one: such a job could not run here.
 *
 * A job of unknown need requests the quantile `prior_quantile`. What it may use is another matter:
 *   - by MPS it may use what nobody has reserved where it starts, up to the careful quantile: its fence (core/fence.h).
 *     More than that runs itself out of memory, at no charge, and is then known
 *   - without a fence it starts beside others only where the careful quantile is free
 *   - where it started, nobody follows until its memory was seen and has settled */
#ifndef CARMA_CORE_PRIOR_H
#define CARMA_CORE_PRIOR_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct gpu;
struct job;
struct record_placed;
struct record_submitted;

#define PRIOR_BINS             81  /* up to 512 MiB, then eighths of each power of two, up to 512 GiB */
#define PRIOR_WORKLOAD_PARTS   100 /* what one workload adds to its bin */
#define PRIOR_CAREFUL_PERMILLE 980 /* as `estimate_quantile` is by default */

struct prior {
    uint32_t parts[PRIOR_BINS];
    /* Caches, not state: */
    int64_t likely_bytes;  /* the quantile `prior_quantile` */
    int64_t careful_bytes; /* the careful one */
    uint64_t changed;      /* core.openings when one of them last changed */
};

void prior_init(struct prior *prior);

/* The configuration, the largest GPU or the distribution is another. */
void prior_refresh(struct core *core);

/* A run of the job has completed, with so much memory on a GPU: before the workload learns of it. */
void prior_completed(struct core *core, const struct job *job, int64_t bytes);

/* What a job of unknown need requests on each GPU; -1: whole GPUs. Never more than a GPU has, or its user may have. */
int64_t prior_request(const struct core *core, const struct record_submitted *wants);

/* Whether that is what the job requests. */
bool prior_speaks_for(const struct core *core, const struct job *job);

/* The most that such a job may use where it is placed: what nobody has reserved there, up to the careful quantile. */
int64_t prior_fence_bytes(const struct core *core, const struct job *job, const struct record_placed *placed);

/* Whether these parts can be a distribution. */
bool prior_is_sane(const uint32_t *parts, uint32_t count);

#endif
