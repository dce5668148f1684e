/* How jobs that share GPUs really slow one another, and the power that a GPU draws. This is the truth of the virtual
 * node and of the simulator; the core estimates both separately. Pure functions on doubles, no allocation: safe in any
 * process that loads the virtual libnvidia-ml.
 *
 * Source: thesis chapters 4 and 6 as calibrated in docs/contention.md; calibrated, not validated. */
#ifndef CARMA_CONTENTION_CONTENTION_H
#define CARMA_CONTENTION_CONTENTION_H

#include <stddef.h>
#include <stdint.h>

struct contention_params {
    /* Of MPS: */
    double capacity;       /* the GPU's capacity, in units of one saturated GPU: 1.0 (variant 1.25) */
    double union_exponent; /* U = capacity * (1 - prod(1 - a_i)^e): 1.0 (variants 0.8, 1.2) */
    double crowding;       /* how it is divided: in proportion to (1 - a_i)^-crowding: 1.0 (variants 0.5, 1.5) ... */
    double spread;         /* ... times a factor of the job's own: log-normal, with this deviation; 0.6 */
    uint64_t seed;         /* of these factors. Jobs of the same a, in permille, have the same one. */
    /* Of time-slicing: */
    double turn_width;  /* the part of the SMs that a process keeps busy while it has its turn: 0.65 */
    double switch_cost; /* the part of the time lost while at least two want the GPU: 0.1 */
};

extern const struct contention_params contention_default;

/* Rates (0..1 of each resident's solo speed) of `count` residents with solo SM activities a[0..count) in 0..1 that
 * share one GPU. Residents with the same number in `servers` are clients of one MPS server; 0: a process by itself.
 * Several servers and processes take turns. A single resident runs at 1. count may be 0. A client of a server may have
 * a limit: to threads[i] (above 0, to 1) of the GPU's threads; NULL: none has. */
void contention_rates(const struct contention_params *params, size_t count, const double *a, const uint64_t *servers,
                      const double *threads, double *rates);

/* The rate of a client with solo SM activity a and such a limit that is alone on the GPU. */
double contention_limited_rate(double a, double threads);

/* The rate of a job with solo SM activity a that is alone on a MIG instance. The instance has `slices` of 7 compute
 * slices and `memory` (0..1) of the GPU's memory slices: an eighth for 1g.5gb, a half for 3g.20gb. */
double contention_mig_rate(const struct contention_params *params, double a, uint32_t slices, double memory);

/* Power draw in watts at total SM activity s (0..1) of a GPU with the given idle and full power. The thesis's A100:
 * idle 53.8 W, full 275.5 W (RMSE 12 W against the published run). */
double contention_power_w(double s, double idle_w, double full_w);

#endif
