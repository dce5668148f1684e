/* The statistics of a monitor's window: one definition for the daemon, which has samples, and the simulator, which has
 * stretches of one level each.
 *
 * Mean, median and p95 weigh each part by its share of the window. EMA (exponential moving average) goes over samples:
 * the newest weighs 2 / (n + 1) where the window holds n. A part of k samples' length counts as k equal samples. RISK
 * is the weighted sum of the thesis's public code, 0.2 mean + 0.2 median + 0.3 p95 + 0.1 p50 + 0.2 EMA (core/config.h).
 */
#ifndef CARMA_BASE_STATS_WINDOW_STATS_H
#define CARMA_BASE_STATS_WINDOW_STATS_H

#include <stddef.h>

struct window_part {
    double level;
    double samples; /* its weight, > 0, in samples of the window's period */
};

/* Of `count` > 0 parts, the oldest first. `capacity`: how many samples a full window holds. */
double window_ema(const struct window_part *parts, size_t count, double capacity);

/* By level, as window_percentile wants them. */
void window_sort(struct window_part *parts, size_t count);

/* Of sorted parts: the lowest level that holds, or is undercut, for that share (0..1) of `samples`, their whole weight.
 */
double window_percentile(const struct window_part *sorted, size_t count, double samples, double share);

double window_risk(double mean, double median, double p95, double ema);

#endif
