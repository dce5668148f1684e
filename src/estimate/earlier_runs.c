/* The need of a job's next run, from the needs of its earlier runs.
 *
 * Runs of one job are exchangeable: the k-th smallest of n peaks is enough for the next with probability k / (n + 1),
 * for any distribution. So with k = ceil(q (n + 1)) <= n that peak is the answer, and no assumption is made. With fewer
 * runs (49 for q = 0.98) it cannot be. Then the peaks are taken for normal. The answer is their predictive quantile,
 * mean + t s sqrt(1 + 1/n), but never less than the largest peak. Here t is of Student's distribution with PRIOR_RUNS +
 * n - 1 degrees of freedom. s starts from PRIOR_SPREAD, as if PRIOR_RUNS runs had shown it, and soon follows the runs
 * themselves.
 *
 * PRIOR_SPREAD is an assumption: no published data set repeats a run. With it two runs differ by 6% at the 98th
 * percentile, which allows for another choice of cuDNN's algorithms and for fragmentation.
 *
 * The daemon does not ask this: its core learns the same way, in integers, for each workload key
 * (src/core/learn/learn.c).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/estimate.h"
#include "estimate/normal.h"

#define PRIOR_SPREAD      0.016
#define PRIOR_RUNS        5
#define CONFIDENCE_OF_ONE 900 /* permille: from there to 1000 as runs come in */

/* Student's quantile from the normal one: Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5). */
static double student_quantile(double probability, double freedom)
{
    double z = normal_quantile(probability), z2 = z * z;

    return z + z * (z2 + 1) / (4 * freedom) + z * ((5 * z2 + 16) * z2 + 3) / (96 * freedom * freedom) +
           z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * freedom * freedom * freedom);
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* Of sorted peaks. */
static double small_sample_bytes(const int64_t *peaks, size_t count, double probability)
{
    double mean = 0, squares = 0, freedom = PRIOR_RUNS + (double)count - 1, spread;

    for (size_t i = 0; i < count; i++)
        mean += (double)peaks[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += ((double)peaks[i] - mean) * ((double)peaks[i] - mean);
    squares += PRIOR_RUNS * (PRIOR_SPREAD * mean) * (PRIOR_SPREAD * mean);
    spread = sqrt(squares / freedom);
    return mean + student_quantile(probability, freedom) * spread * sqrt(1 + 1 / (double)count);
}

static int32_t mean_activity(const struct estimate_history *history)
{
    int64_t sum = 0;
    size_t known = 0;

    for (size_t i = 0; history->smact_permille && i < history->count; i++)
        if (history->smact_permille[i] >= 0) {
            sum += history->smact_permille[i];
            known++;
        }
    return known ? (int32_t)(sum / (int64_t)known) : -1;
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    const struct estimate_history *history = &question->history;
    double probability = question->quantile_permille / 1000.0, bytes;
    CLEANUP(free_ptr) int64_t *peaks = NULL;
    size_t count = history->count, rank;

    if (count == 0)
        return error_set(err, ENOTSUP, "no earlier run of this job has finished: nothing to learn from");
    peaks = xcalloc(count, sizeof *peaks);
    memcpy(peaks, history->peak_bytes, count * sizeof *peaks);
    qsort(peaks, count, sizeof *peaks, compare);
    if (peaks[0] <= 0)
        return error_set(err, EINVAL, "an earlier run needed %lld bytes: give its observed memory",
                         (long long)peaks[0]);
    rank = (size_t)ceil(probability * ((double)count + 1) - 1e-9);
    if (rank <= count) {
        bytes = (double)peaks[rank ? rank - 1 : 0];
    } else {
        bytes = small_sample_bytes(peaks, count, probability);
        if (bytes < (double)peaks[count - 1])
            bytes = (double)peaks[count - 1];
    }
    estimate->bytes = bytes < (double)(INT64_C(1) << 60) ? (int64_t)bytes : INT64_C(1) << 60;
    estimate->median_bytes = peaks[(count - 1) / 2];
    if (estimate->bytes < estimate->median_bytes && question->quantile_permille >= 500)
        estimate->bytes = estimate->median_bytes;
    estimate->smact_permille = mean_activity(history);
    estimate->confidence_permille = 1000 - (1000 - CONFIDENCE_OF_ONE) / (int32_t)(count < 100 ? count : 100);
    return 0;
}

const struct estimator estimator_history = {
    "history", "the need of earlier finished runs of the same job, at a quantile that their number allows", answer};
