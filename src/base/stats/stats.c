#include "base/stats/stats.h"

#include <stdlib.h>

double stats_mean(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : 0;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

double stats_percentile(double *values, size_t count, double percent)
{
    if (!count)
        return 0;
    qsort(values, count, sizeof *values, compare);
    double rank = percent / 100 * (double)(count - 1);
    size_t below = (size_t)rank;
    if (below + 1 >= count)
        return values[count - 1];
    return values[below] + (rank - (double)below) * (values[below + 1] - values[below]);
}
