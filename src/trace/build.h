/* The thesis's trace analyser and mapper (6.3.2). A piece of a published trace becomes one for a server, with workloads
 * drawn by a mix of light, medium and heavy ones. The same source, plan and seed give the same trace. */
#ifndef CARMA_TRACE_BUILD_H
#define CARMA_TRACE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "trace/trace.h"

struct trace_build {
    /* Which jobs. */
    int64_t from_ns, to_ns; /* that arrive in [from, to), in the source's time; to -1: without end */
    uint32_t max_gpus;      /* on no more GPUs than that, and no workloads on more; 0: any */
    size_t jobs;            /* this many of those, drawn evenly; 0: all */

    /* The kinds of jobs. */
    bool draw;                                /* draw workloads; else each job keeps its own, its GPUs and run time */
    const struct workloads *workloads;        /* drawn from; must outlive the result */
    uint32_t mix[WORKLOAD_CLASS_COUNT];       /* shares of the classes, of their sum, which is above 0 */
    bool keep_gpus, keep_durations;           /* the source's instead of the drawn workload's */
    int64_t min_duration_ns, max_duration_ns; /* durations kept are raised and cut to these; 0: not */

    /* When they arrive. */
    double stretch;     /* times between arrivals are multiplied by this ... */
    double load;        /* ... or, where above 0, as long as makes this load on ... */
    uint32_t load_gpus; /* ... this many GPUs: GPU time / (GPUs x time from the first to the last arrival) */

    uint64_t seed;
};

/* The result, for people. */
struct trace_build_report {
    size_t in_window;
    size_t too_large; /* of those */
    size_t class_jobs[WORKLOAD_CLASS_COUNT];
    double stretch;
};

/* Makes *built (to be released; empty on an error) from `source`. Arrivals begin at 0; times are whole milliseconds.
 *
 * The mix is met exactly, to the nearest job (largest remainders), in random order; within a class one workload is as
 * likely as another. Where jobs keep their GPUs, each takes only workloads that run on as many or fewer.
 * One line in err where nothing is left, a class has no workload, or the plan cannot be met. */
int trace_build(struct trace *built, const struct trace *source, const struct trace_build *plan,
                struct trace_build_report *report, struct error *err);

/* Appends the trace in carma's own format; every job must have a workload. */
void trace_write(const struct trace *trace, struct strbuf *out);

#endif
