#include "trace/demand.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats/stats.h"
#include "base/units.h"

const double demand_percents[DEMAND_QUANTILES] = {0, 25, 50, 75, 90, 99, 100};

#define WANTED_BINS 24

/* A job begins or ends, and the demand changes by this many GPUs. */
struct change {
    int64_t at_ns;
    double gpus;
};

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left, *b = right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return (a->gpus > b->gpus) - (a->gpus < b->gpus); /* ends before begins: no peak that never was */
}

static double gpus_of(const struct trace_job *job)
{
    return job->gpus * (job->gpu_permille / 1000.0);
}

/* The shortest round length of which at most WANTED_BINS make the span. */
static int64_t round_bin(int64_t span_ns)
{
    static const int64_t round_s[] = {1,      2,      5,       10,      15,      30,       60,
                                      120,    300,    600,     900,     1800,    3600,     7200,
                                      10800,  21600,  43200,   86400,   172800,  259200,   432000,
                                      604800, 864000, 1209600, 2592000, 7776000, 31536000, 315360000};
    size_t i = 0;

    while (i + 1 < array_size(round_s) && span_ns / (round_s[i] * NS_PER_SEC) >= WANTED_BINS)
        i++;
    return round_s[i] * NS_PER_SEC;
}

static int make_bins(struct trace_demand *demand, const struct trace *trace, int64_t bin_ns, struct error *err)
{
    int64_t span_ns = demand->last_ns - demand->first_ns;

    demand->bin_ns = bin_ns ? bin_ns : round_bin(span_ns);
    if (span_ns / demand->bin_ns >= DEMAND_MAX_BINS)
        return error_set(err, EINVAL, "arrivals over %" PRId64 " s make more than %d bins of %g s: take longer ones",
                         span_ns / NS_PER_SEC, DEMAND_MAX_BINS, (double)demand->bin_ns / 1e9);
    demand->bin_count = (size_t)(span_ns / demand->bin_ns) + 1;
    demand->bins = xcalloc(demand->bin_count, sizeof *demand->bins);
    for (size_t i = 0; i < trace->count; i++)
        demand->bins[(trace->items[i].arrival_ns - demand->first_ns) / demand->bin_ns].arrivals++;
    return 0;
}

/* `gpus` are wanted from one time to the other, within the bins: adds them to each that they touch. */
static void add_to_bins(struct trace_demand *demand, int64_t from_ns, int64_t to_ns, double gpus)
{
    while (from_ns < to_ns) {
        int64_t bin = (from_ns - demand->first_ns) / demand->bin_ns;
        int64_t end_ns = demand->first_ns + (bin + 1) * demand->bin_ns;

        if (end_ns > to_ns)
            end_ns = to_ns;
        demand->bins[bin].gpus_wanted += gpus * (double)(end_ns - from_ns) / (double)demand->bin_ns;
        from_ns = end_ns;
    }
}

/* The last bin is a mean until the last arrival, which may be its first moment: then it is the demand there. */
static void finish_last_bin(struct trace_demand *demand, double gpus_at_last)
{
    struct demand_bin *bin = &demand->bins[demand->bin_count - 1];
    int64_t covered_ns = (demand->last_ns - demand->first_ns) % demand->bin_ns;

    if (covered_ns > 0)
        bin->gpus_wanted *= (double)demand->bin_ns / (double)covered_ns;
    else
        bin->gpus_wanted = gpus_at_last;
}

static void sweep(struct trace_demand *demand, const struct trace *trace)
{
    CLEANUP(free_ptr) struct change *changes = xcalloc(2 * trace->count, sizeof *changes);
    int64_t span_ns = demand->last_ns - demand->first_ns;
    double gpus = 0, gpus_at_last = 0, gpu_ns = 0;

    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->items[i];

        changes[2 * i] = (struct change){job->arrival_ns, gpus_of(job)};
        changes[2 * i + 1] = (struct change){job->arrival_ns + trace_job_duration_ns(job), -gpus_of(job)};
    }
    qsort(changes, 2 * trace->count, sizeof *changes, compare_changes);
    for (size_t i = 0; i + 1 < 2 * trace->count; i++) {
        int64_t from_ns = changes[i].at_ns, to_ns = changes[i + 1].at_ns;

        gpus += changes[i].gpus;
        demand->gpus_wanted_max = fmax(demand->gpus_wanted_max, gpus);
        if (from_ns > demand->last_ns)
            continue;
        if (to_ns > demand->last_ns)
            to_ns = demand->last_ns;
        gpus_at_last = gpus;
        gpu_ns += gpus * (double)(to_ns - from_ns);
        add_to_bins(demand, from_ns, to_ns, gpus);
    }
    finish_last_bin(demand, gpus_at_last);
    demand->gpus_wanted_mean = span_ns > 0 ? gpu_ns / (double)span_ns : 0;
}

static void measure_run_times(struct trace_demand *demand, const struct trace *trace)
{
    CLEANUP(free_ptr) double *seconds = xcalloc(trace->count, sizeof *seconds);

    for (size_t i = 0; i < trace->count; i++) {
        seconds[i] = (double)trace_job_duration_ns(&trace->items[i]) / 1e9;
        demand->gpu_seconds += seconds[i] * gpus_of(&trace->items[i]);
    }
    demand->run_mean_s = stats_mean(seconds, trace->count);
    for (size_t q = 0; q < DEMAND_QUANTILES; q++)
        demand->run_s[q] = stats_percentile(seconds, trace->count, demand_percents[q]);
}

static void count_widths(struct trace_demand *demand, const struct trace *trace)
{
    CLEANUP(free_ptr) size_t *jobs = xcalloc(TRACE_MAX_GPUS + 1, sizeof *jobs);
    size_t capacity = 0;

    for (size_t i = 0; i < trace->count; i++)
        jobs[trace->items[i].gpus]++;
    for (uint32_t gpus = 1; gpus <= TRACE_MAX_GPUS; gpus++) {
        if (!jobs[gpus])
            continue;
        array_reserve(demand->widths, capacity, demand->width_count + 1);
        demand->widths[demand->width_count++] = (struct demand_width){gpus, jobs[gpus]};
    }
}

int trace_demand(struct trace_demand *demand, const struct trace *trace, int64_t bin_ns, struct error *err)
{
    int rc;

    *demand = (struct trace_demand){
        .jobs = trace->count,
        .first_ns = trace->items[0].arrival_ns,
        .last_ns = trace->items[trace->count - 1].arrival_ns,
    };
    rc = make_bins(demand, trace, bin_ns, err);
    if (rc)
        return rc;
    sweep(demand, trace);
    measure_run_times(demand, trace);
    count_widths(demand, trace);
    for (size_t i = 0; i < trace->count; i++)
        if (trace->items[i].workload)
            demand->class_jobs[workload_class(trace->items[i].workload)]++;
    return 0;
}

void trace_demand_release(struct trace_demand *demand)
{
    free(demand->bins);
    free(demand->widths);
    *demand = (struct trace_demand){0};
}
