/* How jobs that share GPUs really slow one another, and the power that a GPU draws. This is the truth of the virtual
 * node and of the simulator; the core estimates both separately. Pure functions on doubles, no allocation: safe in any
 * process that loads the virtual libnvidia-ml.
 *
 * Source: thesis chapters 4 and 6 as calibrated in docs/contention.md; calibrated, not validated. */
#ifndef CARMA_CONTENTION_CONTENTION_H
#define CARMA_CONTENTION_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/share.h"

struct contention_params {
    double capacity;       /* the GPU's capacity, in units of one saturated GPU: 1.0 (variant 1.25) */
    double union_exponent; /* U = capacity * (1 - prod(1 - a_i)^e): 1.0 (variants 0.8, 1.2) */
    double share_weight;   /* how the capacity is divided among residents: weight a_i^(w - 1); 1.0 = equal slowdown */
    double time_slice_exponent; /* time-sliced jobs see g_i = a_i^0.4 ... */
    double time_slice_factor;   /* ... and deliver 0.85 of it */
};

extern const struct contention_params contention_default;

/* Rates (0..1 of each resident's solo speed) of `count` residents with solo SM activities a[0..count) in 0..1 that
 * share one GPU. A single resident runs at 1. count may be 0. Every mode but SHARE_MPS is computed
 * as SHARE_TIME_SLICE, mixed modes too. */
void contention_rates(const struct contention_params *params, enum share_mode mode, size_t count, const double *a,
                      double *rates);

/* A job on `slices` of 7 MIG slices: its rate at solo SM activity a. */
double contention_mig_rate(double a, int slices);

/* Power draw in watts at total SM activity s (0..1) of a GPU with the given idle and full power. The thesis's A100:
 * idle 53.8 W, full 275.5 W (RMSE 12 W against the published run). */
double contention_power_w(double s, double idle_w, double full_w);

#endif
