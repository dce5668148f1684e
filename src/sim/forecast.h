/* When will a waiting job start? A copy of the core goes on by itself: running jobs end as earlier runs did, the core
 * decides, and what it starts ends in its turn; and as many jobs are submitted as in the last day. That is done
 * FORECAST_DRAWS times with other run times, so that the answer has a spread. Pure, and slow: not for a thread that
 * others wait for. */
#ifndef CARMA_SIM_FORECAST_H
#define CARMA_SIM_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/record.h"

#define FORECAST_DRAWS 17   /* a prime: see forecast.c */
#define FORECAST_MOST  1000 /* jobs that wait, of those the first in the order */

/* Where run times are known from, the best first. */
enum forecast_basis {
    FORECAST_BY_RUNS,  /* earlier runs of the same job */
    FORECAST_BY_USER,  /* of the same user's jobs */
    FORECAST_BY_NODE,  /* of all jobs */
    FORECAST_BY_LIMIT, /* its time limit: as if it ran for as long as it may */
    FORECAST_BY_NOTHING
};

/* How long a job runs, from its start on, and for how long it has run already. Where the next run's time lies among
 * those of n earlier ones is as likely in each of the n + 1 gaps: it is between half the shortest and twice the
 * longest. Of one that has run already, the longer ones count; where there are none, it goes on for as long again at
 * most. */
struct forecast_job {
    uint64_t job;
    uint64_t drawn_by; /* those with the same number are short together, or long; 0: by its own */
    uint32_t basis;
    int64_t limit_ns;        /* 0: none */
    int64_t ran_ns;          /* -1: it does not run */
    const int64_t *times_ns; /* borrowed; ascending; none by a limit */
    size_t count;
};

#define FORECAST_SPAN_NS (INT64_C(24) * 3600 * INT64_C(1000000000))

/* A job of the last FORECAST_SPAN_NS: one like it is submitted in each span to come, all of them by the same time,
 * drawn anew, earlier or later. */
struct forecast_arrival {
    int64_t at_ns; /* in the span */
    struct record_submitted wants;
    struct forecast_job job; /* its number does not matter */
};

struct forecast_question {
    const struct record_list
        *state; /* core_snapshot of now_ns; it may lack waiting jobs, but for one with GPUs reserved */
    int64_t now_ns;
    uint64_t job;
    const struct forecast_job *jobs; /* in the order of ids */
    size_t count;
    const struct forecast_arrival *arrivals;
    size_t arrival_count;
};

struct forecast {
    int64_t low_ns, median_ns, high_ns; /* from now on, quantiles 0.1, 0.5 and 0.9; INT64_MAX: not within the horizon */
    uint32_t basis;   /* the worst of those that it waits for; FORECAST_BY_NOTHING: not known, all others say nothing */
    uint64_t unknown; /* not known: for how long this job runs; 0: it never comes to its start */
};

/* 0; or -EINVAL, for a state that is none. */
int forecast_start(const struct forecast_question *question, struct forecast *forecast, struct error *err);

#endif
