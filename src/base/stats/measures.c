#include "base/stats/measures.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats/stats.h"

double measures_sharing_slowdown(double run_s, double alone_s)
{
    return fmax(run_s, MEASURES_LEAST_S) / fmax(alone_s, MEASURES_LEAST_S);
}

double measures_bounded_slowdown(double jct_s, double alone_s)
{
    return fmax(1, jct_s / fmax(alone_s, MEASURES_LEAST_S));
}

double measures_jain(const double *values, size_t count)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    return count ? sum * sum / ((double)count * squares) : NAN;
}

static int by_uid(const void *left, const void *right)
{
    uint32_t a = ((const struct measured_job *)left)->uid, b = ((const struct measured_job *)right)->uid;

    return (a > b) - (a < b);
}

/* The mean of each user's jobs, which stand together. Returns how many users there are. */
static size_t means_of_users(const struct measured_job *jobs, const double *values, size_t count, double *means)
{
    size_t users = 0;

    for (size_t first = 0, next; first < count; first = next) {
        for (next = first; next < count && jobs[next].uid == jobs[first].uid;)
            next++;
        means[users++] = stats_mean(values + first, next - first);
    }
    return users;
}

static struct measures_slowdown slowdown_of(double *values, size_t count)
{
    if (!count)
        return (struct measures_slowdown){NAN, NAN, NAN};
    return (struct measures_slowdown){.mean = stats_mean(values, count),
                                      .p95 = stats_percentile(values, count, 95),
                                      .max = stats_percentile(values, count, 100)};
}

void measures_of(struct measured_job *jobs, size_t count, struct measures *measures)
{
    CLEANUP(free_ptr) double *sharing = xcalloc(count + 1, sizeof *sharing);
    CLEANUP(free_ptr) double *bounded = xcalloc(count + 1, sizeof *bounded);
    CLEANUP(free_ptr) double *means = xcalloc(count + 1, sizeof *means);

    if (count)
        qsort(jobs, count, sizeof *jobs, by_uid);
    for (size_t i = 0; i < count; i++) {
        sharing[i] = measures_sharing_slowdown(jobs[i].run_s, jobs[i].alone_s);
        bounded[i] = measures_bounded_slowdown(jobs[i].jct_s, jobs[i].alone_s);
    }
    measures->users = means_of_users(jobs, bounded, count, means);
    measures->jain = measures_jain(means, measures->users);
    measures->sharing = slowdown_of(sharing, count);
    measures->bounded = slowdown_of(bounded, count);
}
