/* Training jobs in pairs under MPS: who of the two pays. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/share/rates.h"
#include "evaluation/sharing.h"
#include "trace/csv.h"

#define PAIRS(COLUMN)                                                                                                  \
    COLUMN(FIRST, "a", true)                                                                                           \
    COLUMN(SECOND, "b", true)                                                                                          \
    COLUMN(FIRST_STEP, "a_step_alone_ms", false)                                                                       \
    COLUMN(SECOND_STEP, "b_step_alone_ms", false)                                                                      \
    COLUMN(FIRST_RATE, "a_rate", true)                                                                                 \
    COLUMN(SECOND_RATE, "b_rate", true)

enum { PAIRS(CSV_COLUMN_PLACE) };

#define RATE_LEAST 0.001 /* a thousandth of the speed alone */
#define RATE_MOST  10

struct pair {
    struct workload *of[2];
    int64_t rate_ppm[2];
};

struct workload {
    int64_t both_ppm; /* the sum of the rates in its pairs with itself */
    int32_t count;    /* of those */
    UT_hash_handle hh;
    char name[];
};

struct pairs {
    struct workload *workloads;
    struct pair *list;
    size_t count, capacity;
};

static struct workload *workload_of(struct pairs *pairs, const char *name)
{
    struct workload *workload;

    HASH_FIND_STR(pairs->workloads, name, workload);
    if (!workload) {
        workload = xcalloc(1, sizeof *workload + strlen(name) + 1);
        memcpy(workload->name, name, strlen(name) + 1);
        HASH_ADD_STR(pairs->workloads, name, workload);
    }
    return workload;
}

static int read_pair(const struct csv *csv, void *user, struct error *err)
{
    struct pairs *pairs = user;
    struct pair pair;
    int rc = csv_number(csv, FIRST_RATE, RATE_LEAST, RATE_MOST, RATES_PPM, 0, &pair.rate_ppm[0], err);

    if (rc == 0)
        rc = csv_number(csv, SECOND_RATE, RATE_LEAST, RATE_MOST, RATES_PPM, 0, &pair.rate_ppm[1], err);
    if (rc)
        return rc;
    pair.of[0] = workload_of(pairs, csv->values[FIRST]);
    pair.of[1] = workload_of(pairs, csv->values[SECOND]);
    if (pair.of[0] == pair.of[1]) {
        pair.of[0]->both_ppm += pair.rate_ppm[0] + pair.rate_ppm[1];
        pair.of[0]->count++;
        return 0;
    }
    array_reserve(pairs->list, pairs->capacity, pairs->count + 1);
    pairs->list[pairs->count++] = pair;
    return 0;
}

static int read_pairs(struct pairs *pairs, const char *path, struct error *err)
{
    static const struct csv_column columns[] = {PAIRS(CSV_COLUMN_ROW)};
    const struct csv_table table = {.columns = columns, .count = array_size(columns)};

    return csv_read(path, &table, read_pair, pairs, err);
}

static void release(struct pairs *pairs)
{
    struct workload *workload, *next;

    HASH_ITER (hh, pairs->workloads, workload, next) {
        HASH_DEL(pairs->workloads, workload);
        free(workload);
    }
    free(pairs->list);
}

/* Two equal jobs run at (1 - (1 - a)^2) / 2a = 1 - a / 2 of their speed alone. */
static int32_t activity_permille(const struct workload *workload)
{
    int64_t permille = 2000 - workload->both_ppm / workload->count * 1000 / RATES_PPM;

    return permille < 0 ? 0 : permille > 1000 ? 1000 : (int32_t)permille;
}

static double slowdown(int64_t one_ppm, int64_t other_ppm)
{
    return (double)RATES_PPM / (double)(one_ppm < other_ppm ? one_ppm : other_ppm);
}

static void compare(const struct pair *pair, int32_t bound_permille, struct sharing_pairs *result)
{
    const struct rates_client clients[] = {{activity_permille(pair->of[0]), RATES_ALL_THREADS},
                                           {activity_permille(pair->of[1]), RATES_ALL_THREADS}};
    int32_t predicted[2];
    double measured = slowdown(pair->rate_ppm[0], pair->rate_ppm[1]), bound = bound_permille / 1000.0;

    rates_of_clients(2, clients, predicted);
    for (size_t i = 0; i < 2; i++) {
        double error = (double)(predicted[i] - pair->rate_ppm[i]) / RATES_PPM;
        result->sum_bias += error;
        result->rate_rmse += error * error;
    }
    result->pairs++;
    result->within += measured <= bound;
    if (slowdown(predicted[0], predicted[1]) * 1000 > rates_admitted_permille(bound_permille))
        return;
    result->admitted++;
    result->over += measured > bound;
    result->worst = fmax(result->worst, measured);
}

int sharing_pairs(struct sharing_pairs *result, const char *path, int32_t bound_permille, struct error *err)
{
    struct pairs pairs = {0};
    int rc = read_pairs(&pairs, path, err);

    *result = (struct sharing_pairs){.worst = NAN};
    for (size_t i = 0; i < pairs.count && rc == 0; i++) {
        if (pairs.list[i].of[0]->count && pairs.list[i].of[1]->count)
            compare(&pairs.list[i], bound_permille, result);
        else
            result->left_out++;
    }
    release(&pairs);
    if (rc == 0 && !result->pairs)
        rc =
            error_set(err, EINVAL, "%.200s: no pair of two workloads that each have a pair with themselves, too", path);
    if (rc)
        return rc;
    result->rate_rmse = sqrt(result->rate_rmse / (2.0 * (double)result->pairs));
    result->sum_bias /= (double)result->pairs;
    return 0;
}
