/* A trace's demand: when its jobs arrive, how long they run, how many GPUs they would keep busy. */
#ifndef CARMA_TRACE_DEMAND_H
#define CARMA_TRACE_DEMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/trace.h"

#define DEMAND_MAX_BINS 10000

/* Quantiles of run times: demand_percents are 0, 25, 50, 75, 90, 99, 100. */
#define DEMAND_QUANTILES 7
extern const double demand_percents[DEMAND_QUANTILES];

struct demand_bin {
    size_t arrivals;
    double gpus_wanted; /* mean over the bin; over the last, until the last arrival */
};

struct demand_width {
    uint32_t gpus;
    size_t jobs;
};

/* GPUs wanted: how many would be busy if every job ran from its arrival on, alone, for its run time. A job that asked
 * for a part of a GPU counts as that part. */
struct trace_demand {
    size_t jobs;
    int64_t first_ns, last_ns; /* arrivals */
    int64_t bin_ns;
    struct demand_bin *bins; /* owned; bin i begins at first_ns + i * bin_ns; the last holds last_ns */
    size_t bin_count;
    double gpu_seconds;      /* of all jobs, to their ends */
    double gpus_wanted_mean; /* from the first to the last arrival; 0 where they are one */
    double gpus_wanted_max;
    double run_mean_s;
    double run_s[DEMAND_QUANTILES];
    struct demand_width *widths; /* owned; by rising GPUs, those that occur */
    size_t width_count;
    size_t class_jobs[WORKLOAD_CLASS_COUNT]; /* of the jobs that have a workload */
};

/* bin_ns 0: a round length that makes at most 24 bins. -EINVAL where there would be more than DEMAND_MAX_BINS. */
int trace_demand(struct trace_demand *demand, const struct trace *trace, int64_t bin_ns, struct error *err);
void trace_demand_release(struct trace_demand *demand);

#endif
