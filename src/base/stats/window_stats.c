#include "base/stats/window_stats.h"

#include <math.h>
#include <stdlib.h>

double window_ema(const struct window_part *parts, size_t count, double capacity)
{
    double keep = 1 - 2 / (capacity + 1), average = parts[0].level;

    for (size_t i = 1; i < count; i++)
        average = parts[i].level + (average - parts[i].level) * pow(keep, parts[i].samples);
    return average;
}

static int compare_parts(const void *left, const void *right)
{
    const struct window_part *a = left, *b = right;

    return (a->level > b->level) - (a->level < b->level);
}

void window_sort(struct window_part *parts, size_t count)
{
    qsort(parts, count, sizeof *parts, compare_parts);
}

double window_percentile(const struct window_part *sorted, size_t count, double samples, double share)
{
    double wanted = share * samples, passed = 0;

    for (size_t i = 0; i < count; i++) {
        passed += sorted[i].samples;
        if (passed >= wanted)
            return sorted[i].level;
    }
    return sorted[count - 1].level;
}

double window_risk(double mean, double median, double p95, double ema)
{
    return 0.2 * mean + 0.3 * median + 0.3 * p95 + 0.2 * ema;
}
