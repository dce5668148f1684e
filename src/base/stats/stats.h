/* Means and percentiles of small samples. */
#ifndef CARMA_BASE_STATS_STATS_H
#define CARMA_BASE_STATS_STATS_H

#include <stddef.h>

double stats_mean(const double *values, size_t count); /* 0 of none */

/* The percentile `percent` (0 to 100), interpolated linearly between the closest ranks; sorts values. 0 of none. */
double stats_percentile(double *values, size_t count, double percent);

#endif
