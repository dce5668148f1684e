/* Workloads alone on MIG instances of several sizes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/share/rates.h"
#include "evaluation/sharing.h"
#include "trace/csv.h"

#define MIG(COLUMN)                                                                                                    \
    COLUMN(WORKLOAD, "workload", true)                                                                                 \
    COLUMN(PROFILE, "profile", true)                                                                                   \
    COLUMN(RATE, "rate_against_7g", true)                                                                              \
    COLUMN(GPU, "gpu_utilization_7g", false)                                                                           \
    COLUMN(MEMORY, "memory_utilization_7g", false)

enum { MIG(CSV_COLUMN_PLACE) };

#define SLICES     7
#define RATE_LEAST 0.001
#define RATE_MOST  10

struct measured {
    double rate[SLICES]; /* by compute slices; 0: not measured */
    UT_hash_handle hh;
    char name[];
};

static struct measured *measured_of(struct measured **all, const char *name)
{
    struct measured *measured;

    HASH_FIND_STR(*all, name, measured);
    if (!measured) {
        measured = xcalloc(1, sizeof *measured + strlen(name) + 1);
        memcpy(measured->name, name, strlen(name) + 1);
        HASH_ADD_STR(*all, name, measured);
    }
    return measured;
}

/* The profile's name begins with its compute slices: 3g.20gb. */
static int read_rate(const struct csv *csv, void *user, struct error *err)
{
    struct measured **all = user;
    const char *profile = csv->values[PROFILE];
    int64_t rate_ppm;
    int rc = csv_number(csv, RATE, RATE_LEAST, RATE_MOST, RATES_PPM, 0, &rate_ppm, err);

    if (rc)
        return rc;
    if (*profile < '1' || *profile > '0' + SLICES || profile[1] != 'g')
        return csv_error(csv, err, "profile '%.20s' does not begin with 1g to 7g", profile);
    if (*profile < '0' + SLICES)
        measured_of(all, csv->values[WORKLOAD])->rate[*profile - '0'] = (double)rate_ppm / RATES_PPM;
    return 0;
}

static double predicted(int32_t activity_permille, int slices)
{
    return 1000.0 / (double)rates_slowed_by_part(activity_permille, slices * 1000 / SLICES);
}

static int32_t activity_by(double rate, int slices)
{
    int32_t best = 0;

    for (int32_t activity = 1; activity <= 1000; activity++)
        if (fabs(predicted(activity, slices) - rate) < fabs(predicted(best, slices) - rate))
            best = activity;
    return best;
}

static void compare(const struct measured *measured, struct sharing_mig *result)
{
    size_t before = result->rates;
    int smallest = 1;
    int32_t activity;

    while (smallest < SLICES && !measured->rate[smallest])
        smallest++;
    activity = activity_by(measured->rate[smallest], smallest);
    for (int slices = smallest + 1; slices < SLICES; slices++)
        if (measured->rate[slices]) {
            double error = predicted(activity, slices) - measured->rate[slices];
            result->rates++;
            result->rate_rmse += error * error;
            result->rate_bias += error;
        }
    result->left_out += result->rates == before;
}

int sharing_mig(struct sharing_mig *mig, const char *path, struct error *err)
{
    static const struct csv_column columns[] = {MIG(CSV_COLUMN_ROW)};
    const struct csv_table table = {.columns = columns, .count = array_size(columns)};
    struct measured *all = NULL, *measured, *next;
    int rc = csv_read(path, &table, read_rate, &all, err);

    *mig = (struct sharing_mig){0};
    HASH_ITER (hh, all, measured, next) {
        compare(measured, mig);
        HASH_DEL(all, measured);
        free(measured);
    }
    if (rc == 0 && !mig->rates)
        rc = error_set(err, EINVAL, "%.200s: no workload on two instances", path);
    if (rc)
        return rc;
    mig->rate_rmse = sqrt(mig->rate_rmse / (double)mig->rates);
    mig->rate_bias /= (double)mig->rates;
    return 0;
}
