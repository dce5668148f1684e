/* The results of a trace's jobs and users, of the jobs that completed: docs/simulator.md explains the figures. */
#ifndef CARMA_BASE_STATS_MEASURES_H
#define CARMA_BASE_STATS_MEASURES_H

#include <stddef.h>
#include <stdint.h>

#define MEASURES_LEAST_S 10.0 /* the usual bound: shorter jobs would have slowdowns of thousands */

/* Run time of the attempt that completed / run time alone. Waiting and crashed attempts do not count. */
double measures_sharing_slowdown(double run_s, double alone_s);

/* (End - submission) / run time alone, at least 1. */
double measures_bounded_slowdown(double jct_s, double alone_s);

/* (sum x)^2 / (n sum x^2): 1 where all are equal, 1/n where one has everything; NAN of none. */
double measures_jain(const double *values, size_t count);

struct measured_job {
    uint32_t uid;
    double run_s, jct_s, alone_s;
};

struct measures {
    struct measures_slowdown {
        double mean, p95, max; /* over jobs; NAN of none */
    } sharing, bounded;
    double jain; /* of the users' mean bounded slowdowns; NAN of none */
    size_t users;
};

/* Sorts the jobs by user. */
void measures_of(struct measured_job *jobs, size_t count, struct measures *measures);

#endif
