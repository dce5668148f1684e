/* Clients of one MPS server with a share of the threads each. */
#include <errno.h>
#include <math.h>

#include "base/memory.h"
#include "core/share/rates.h"
#include "evaluation/sharing.h"
#include "trace/csv.h"

#define THREADS(COLUMN)                                                                                                \
    COLUMN(MIX, "mix", false)                                                                                          \
    COLUMN(JOBS, "jobs", true)                                                                                         \
    COLUMN(AT_50, "speed_at_50_percent", true)                                                                         \
    COLUMN(AT_14, "speed_at_14_percent", true)

enum { THREADS(CSV_COLUMN_PLACE) };

#define SPEED_MOST 100 /* times the speed without a limit */
#define JOBS_MOST  48  /* clients of a server */

static int read_job(const struct csv *csv, void *user, struct error *err)
{
    struct sharing_threads *threads = user;
    struct sharing_gain *gain;
    int64_t jobs, speed_ppm;
    int rc = csv_integer(csv, JOBS, 1, JOBS_MOST, 0, &jobs, err);

    if (rc || jobs < SHARING_MIX_LEAST || jobs > SHARING_MIX_MOST)
        return rc;
    gain = &threads->of[jobs];
    gain->percent = 2 * rates_thread_percent((uint32_t)jobs) < 50 + 14 ? 14 : 50;
    rc = csv_number(csv, gain->percent == 50 ? AT_50 : AT_14, 0, SPEED_MOST, RATES_PPM, 0, &speed_ppm, err);
    if (rc)
        return rc;
    gain->jobs++;
    gain->measured += (double)speed_ppm / RATES_PPM;
    return 0;
}

static int read_jobs(struct sharing_threads *threads, const char *path, struct error *err)
{
    static const struct csv_column columns[] = {THREADS(CSV_COLUMN_ROW)};
    const struct csv_table table = {.columns = columns, .count = array_size(columns)};

    return csv_read(path, &table, read_job, threads, err);
}

int sharing_threads(struct sharing_threads *threads, const char *path, struct error *err)
{
    int rc;

    *threads = (struct sharing_threads){.gain_error = NAN};
    rc = read_jobs(threads, path, err);
    for (uint32_t jobs = SHARING_MIX_LEAST; jobs <= SHARING_MIX_MOST && rc == 0; jobs++) {
        struct sharing_gain *gain = &threads->of[jobs];
        if (!gain->jobs)
            continue;
        gain->measured /= (double)gain->jobs;
        gain->predicted = rates_thread_gain_permille(jobs, gain->percent) / 1000.0;
        threads->gain_error = fmax(threads->gain_error, fabs(gain->predicted - gain->measured));
    }
    if (rc == 0 && isnan(threads->gain_error))
        rc = error_set(err, EINVAL, "%.200s: no mix of %d to %d jobs", path, SHARING_MIX_LEAST, SHARING_MIX_MOST);
    return rc;
}
