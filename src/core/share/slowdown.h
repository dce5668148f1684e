/* How much jobs on one GPU are expected to slow one another, by the modes in which they share it. Integers only; a
 * model of the core's own, apart from the simulator's truth (src/contention).
 *
 * Clients of one MPS server with solo SM activities a_i deliver U = 1 - prod(1 - a_i) together, and share that as
 * core/share/rates.h says. A client with a limit of its threads runs as on such an instance (below), wants the SMs for
 * less, and crowds less. Processes without MPS, and the servers of several users, take turns. Where one has the turn,
 * it keeps w of the SMs busy. So with the activity u (of a server: its U) it wants the turn for g = min(1, u / w) of
 * the time. All run at (P(at least one wants it) - k P(several do)) / sum(g); w = 0.65 and k = 0.1 are the fit of
 * docs/contention.md. A job alone on a MIG instance with the part p of the SMs is slowed by sqrt(1 - a^2 + (a / p)^2).
 * Several jobs share the instance as a GPU of its own. */
#ifndef CARMA_CORE_SHARE_SLOWDOWN_H
#define CARMA_CORE_SHARE_SLOWDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/state.h"

struct core;
struct gpu;
struct job;
struct user;

struct slowdown {
    int32_t worst_permille; /* of the job that is slowed most; 1000: not at all */
    int64_t delivered_ppm;  /* of the GPU's SMs: its expected SM activity */
    int64_t progress_ppm;   /* sum of the jobs' rates, each in parts of its rate alone */
    bool measured;          /* the first or the third is not predicted: the jobs' workloads have met before (pairs.h) */
    bool crowded;           /* clients of a server share its turns: who of them pays is known roughly */
    uint32_t turns;         /* how many take turns; 1 where MPS serves all of them */
};

/* Of the GPU's residents, were `joining` (may be NULL) there too. Where two workloads have met before, that measurement
 * goes before the prediction. For two jobs alone it replaces the prediction. For more jobs the worst pair is the least
 * that is predicted. */
struct slowdown slowdown_predict(const struct core *core, const struct gpu *gpu, const struct job *joining);

/* How much more of a whole GPU's SMs is expected to be active with it: the difference of delivered_ppm, of an instance
 * in parts of its GPU, at a lower cost. */
int64_t slowdown_added_ppm(const struct core *core, const struct gpu *gpu, const struct job *joining);

/* The residents' sums, which a GPU keeps until one of them, or figures of its workload, change. Owned by the caller, by
 * free().
 */
struct slowdown_takers *slowdown_takers_new(void);

/* How much the expected SM activity changes with that of the resident's job, in permille. */
int64_t slowdown_sensitivity(const struct core *core, const struct gpu *gpu, const struct job *resident);

/* The least that must be done with a job on the GPU, in rates alone: where several take turns, TURNS_LEAST_GAIN more
 * than without it. Where nobody does, the prediction always pays; the measured gain must not be less than without it,
 * beyond the spread of readings. 0: any. */
int64_t slowdown_least_progress_ppm(const struct core *core, const struct gpu *gpu, const struct slowdown *with);

/* The worst slowdown that may be predicted so that the bound is kept; 0: any. Less than the bound where clients share a
 * server and nothing was measured (rates_admitted_permille). */
int32_t slowdown_most_predicted(const struct slowdown *with, int32_t bound_permille);

/* Whether that pays which was predicted for the GPU with another job. */
bool slowdown_pays(const struct core *core, const struct gpu *gpu, const struct slowdown *with);

/* The bands of SM activity, a bit for each, of which a job of the user (NULL: of any) may come to the residents of a
 * GPU of the core's by prediction. One of another band would slow a resident beyond its bound, be slowed beyond it
 * itself, or not pay. The first band is always in: with an activity of 0 nothing is predicted. One within may still be
 * refused. */
uint64_t slowdown_bands(const struct core *core, const struct gpu *gpu, const struct user *user);

#define SLOWDOWN_BANDS         64
#define SLOWDOWN_BAND_PERMILLE 16

static inline int slowdown_band(int32_t activity_permille)
{
    return activity_permille / SLOWDOWN_BAND_PERMILLE;
}

/* One that shares a GPU. */
struct slowdown_party {
    uint64_t server;           /* the one that serves it; 0: a process by itself */
    int32_t activity_permille; /* alone on a whole GPU; 0: it runs nothing */
    uint32_t threads_percent;  /* its limit; 0: none */
};

/* The part of the GPU's threads, in percent, that the job gets there as a client of an MPS server. */
uint32_t slowdown_threads(const struct core *core, const struct gpu *gpu, const struct job *joining);

/* The server that serves the job where it runs; 0: none. */
uint64_t slowdown_server(const struct core *core, const struct job *job);

/* The part of the SMs, in permille, that each party is expected to keep busy while they share the GPU, or an instance
 * with that part of it. */
void slowdown_busy(const struct slowdown_party *parties, size_t count, int32_t part_permille, int32_t *busy_permille);

/* The slowdown that is promised to the job; 0: any. */
int32_t job_slowdown_bound(const struct core *core, const struct job *job);

/* The slowdown that the job's coming may cause on the GPU: the least bound of all concerned; 0: any. */
int32_t gpu_slowdown_bound(const struct core *core, const struct job *job, const struct gpu *gpu);

/* Whether the predicted slowdown closes GPUs, as far as the policy predicts it. */
static inline bool core_gates_slowdown(const struct core *core)
{
    return core->policy->predicts && core->config.gate == GATE_ALL;
}

#endif
