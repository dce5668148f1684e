/* Ended jobs tell of the next ones of their user. They tell how long runs of a workload took, and the errors of the
 * estimates of SM activity, by model and family. In memory, filled from the accounting when the daemon starts.
 *
 * A model is the family of networks and the bytes of its parameters (estimate/estimate.h). Another batch size or
 * directory does not make it another model. Each user's estimate is corrected by that user's own runs. Then the
 * estimates of other users, each by that user's runs, are folded in (base/fold.h). Others are not told of runs under a
 * minute, nor of those that left the GPU idle. */
#ifndef CARMA_DAEMON_ACCOUNT_PAST_RUNS_H
#define CARMA_DAEMON_ACCOUNT_PAST_RUNS_H

#include <jansson.h>
#include <stdint.h>

#include "api/spec_estimate.h"
#include "base/error.h"
#include "store/history.h"

#define PAST_RUNS_KEPT 64    /* run times of a workload: the latest */
#define PAST_RUNS_MOST 10000 /* workloads and models: the user with the most loses the oldest; rows read at start */
#define PAST_RUNS_IDLE 10    /* permille of SM activity: not more is an idle GPU */

struct past_runs;

struct past_runs *past_runs_new(void);
void past_runs_free(struct past_runs *runs);

/* The latest rows of the accounting, as many of each of the users. Before the first job ends. */
int past_runs_load(struct past_runs *runs, const char *directory, const uint32_t *uids, size_t count,
                   struct error *err);

/* A job has ended. Only completed ones count. */
void past_runs_end(struct past_runs *runs, const struct store_history *row);

/* Takes back what runs of the user (of_user), of the workload ("": any), or of both have told. */
void past_runs_forget(struct past_runs *runs, bool of_user, uint32_t uid, const char *workload);

/* Models of which the user's runs tell. */
uint32_t past_runs_models(const struct past_runs *runs, uint32_t uid);

/* Corrects the estimate's SM activity for a job of the user by observed runs (estimate/shrinkage.h). */
void past_runs_correct(const struct past_runs *runs, uint32_t uid, struct job_estimate *estimate);

/* Whose run times past_runs_like has. */
enum past_runs_of { PAST_RUNS_OF_WORKLOAD, PAST_RUNS_OF_USER, PAST_RUNS_OF_ALL, PAST_RUNS_OF_NOBODY };

#define PAST_RUNS_LIKE  256 /* of a user, or of all: some of the latest of each workload */
#define PAST_RUNS_LEAST 5   /* of a user, or of all: fewer say nothing */

/* Run times of completed runs of the workload (PAST_RUNS_OF_WORKLOAD), of the user or of all, ascending. Returns how
 * many; 0: they say nothing. */
size_t past_runs_like(const struct past_runs *runs, enum past_runs_of whose, uint32_t uid, const char *workload,
                      int64_t times_ns[static PAST_RUNS_LIKE]);

/* {"runs", "median_ns", "low_ns", "high_ns"}: the completed runs that are kept; of their times the median, and the
 * quantiles 0.1 and 0.9 by the nearest rank. A new reference; null: none. */
json_t *past_runs_times(const struct past_runs *runs, uint32_t uid, const char *workload);

#endif
