#include "contention/contention.h"

#include <math.h>

/* How quickly power saturates with SM activity: fitted to the published run (docs/contention.md). */
#define POWER_CURVE 1.493

#define MIG_SLICES 7.0

const struct contention_params contention_default = {
    .capacity = 1.0,
    .union_exponent = 1.0,
    .share_weight = 1.0,
    .time_slice_exponent = 0.4,
    .time_slice_factor = 0.85,
};

static double clamp01(double x)
{
    return x > 0 ? (x < 1 ? x : 1) : 0; /* NaN becomes 0 */
}

/* A resident's demand on the GPU at full speed: SM activity under MPS, its share of time when time-sliced. */
static double demand(const struct contention_params *params, enum share_mode mode, double a)
{
    a = clamp01(a);
    return mode == SHARE_MPS ? a : pow(a, params->time_slice_exponent);
}

static double weight(const struct contention_params *params, double a)
{
    return params->share_weight == 1.0 ? 1.0 : pow(clamp01(a), params->share_weight - 1.0);
}

void contention_rates(const struct contention_params *params, enum share_mode mode, size_t count, const double *a,
                      double *rates)
{
    double left, idle = 1.0;

    if (count == 1) {
        rates[0] = 1.0;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double d = demand(params, mode, a[i]);

        idle *= 1.0 - d;
        rates[i] = d > 0 ? -1.0 : 1.0; /* negative: its share is still open */
    }
    left = params->capacity * (1.0 - pow(idle, params->union_exponent));
    if (mode != SHARE_MPS)
        left *= params->time_slice_factor;

    /* Hand out `left` in proportion to the weights. A resident whose share exceeds full speed gets full speed; the rest
     * is handed out again among the others. With equal weights that ends in the first round. */
    for (;;) {
        double wanted = 0, level;
        bool capped = false;

        for (size_t i = 0; i < count; i++)
            if (rates[i] < 0)
                wanted += demand(params, mode, a[i]) * weight(params, a[i]);
        if (wanted <= 0)
            return;
        level = left > 0 ? left / wanted : 0;
        for (size_t i = 0; i < count; i++)
            if (rates[i] < 0 && level * weight(params, a[i]) >= 1.0) {
                rates[i] = 1.0;
                left -= demand(params, mode, a[i]);
                capped = true;
            }
        if (capped)
            continue;
        for (size_t i = 0; i < count; i++)
            if (rates[i] < 0)
                rates[i] = level * weight(params, a[i]);
        return;
    }
}

double contention_mig_rate(double a, int slices)
{
    double share = slices / MIG_SLICES;

    a = clamp01(a);
    return a > share ? share / a : 1.0;
}

double contention_power_w(double s, double idle_w, double full_w)
{
    return idle_w + (full_w - idle_w) * (1.0 - exp(-POWER_CURVE * clamp01(s))) / (1.0 - exp(-POWER_CURVE));
}
