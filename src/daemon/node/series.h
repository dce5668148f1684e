/* The history of GPUs and jobs, for charts: in memory alone, of bounded size in every case.
 *
 * Readings come at any pace; one stands for the time since the one before it, if that is not too long ago. A GPU has
 * two rings of means: SERIES_POINTS steps of SERIES_FINE_NS, and as many of SERIES_COARSE_NS, all beginning at
 * multiples of the step. A job has one array with a step that doubles when it is full. It has at most
 * SERIES_JOB_POINTS, and at least half of that for an old job. Times are node time. */
#ifndef CARMA_DAEMON_NODE_SERIES_H
#define CARMA_DAEMON_NODE_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

#define SERIES_POINTS     600
#define SERIES_FINE_NS    (6 * NS_PER_SEC)   /* an hour */
#define SERIES_COARSE_NS  (144 * NS_PER_SEC) /* a day */
#define SERIES_JOB_POINTS 256
#define SERIES_JOBS_OVER  500 /* jobs that do not run any more and have theirs yet: the latest */

enum series_gpu_value {
    SERIES_USED_BYTES,
    SERIES_RESERVED_BYTES,
    SERIES_UNMANAGED_BYTES,
    SERIES_SM_PERMILLE,
    SERIES_POWER_MW,
    SERIES_GPU_VALUES
};

/* Of the job's GPUs: its reservation on each; its largest use on one; the use of everybody there; their mean SM
 * activity. */
enum series_job_value {
    SERIES_JOB_RESERVED_BYTES,
    SERIES_JOB_USED_BYTES,
    SERIES_JOB_GPU_USED_BYTES,
    SERIES_JOB_SM_PERMILLE,
    SERIES_JOB_VALUES
};

struct series;

/* period_ns: how far apart readings are meant to be; hold_ns: how far apart they are at most, or nothing was read
 * between. */
struct series *series_new(int64_t period_ns, int64_t hold_ns);
void series_free(struct series *series);

/* A reading; -1: not known. A point that is not later than the one before is ignored; where the clock was set back
 * further than hold_ns, all points are forgotten. Bytes are kept to the KiB, up to 4 TiB. */
void series_add_gpu(struct series *series, uint32_t gpu, int64_t at_ns, const int64_t values[static SERIES_GPU_VALUES]);
void series_add_job(struct series *series, uint64_t job, int64_t at_ns, const int64_t values[static SERIES_JOB_VALUES]);

/* The mean over the step that begins at from_ns. from_ns is a multiple of step_ns, which is one of the two lengths. -1:
 * nothing was read, or it is forgotten. */
int64_t series_gpu_mean(const struct series *series, uint32_t gpu, int64_t step_ns, int64_t from_ns,
                        enum series_gpu_value value);

struct series_job {
    int64_t from_ns;
    int64_t step_ns;
    uint32_t count; /* steps */
};

/* False: there is none. */
bool series_find_job(const struct series *series, uint64_t job, struct series_job *found);

/* Of its step `index`: the largest, of the SM activity the mean; -1: it did not run, or nothing is known. */
int64_t series_job_at(const struct series *series, uint64_t job, uint32_t index, enum series_job_value value);

#endif
