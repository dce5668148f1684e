#include "daemon/account/past_runs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/units.h"
#include "estimate/shrinkage.h"

struct workload_times {
    uint32_t count, next;
    int64_t times_ns[PAST_RUNS_KEPT]; /* a ring */
    UT_hash_handle hh;
    char workload[];
};

struct model_errors {
    struct shrinkage_errors errors; /* of its runs */
    UT_hash_handle hh;
    char model[]; /* "cnn 102228128" */
};

struct past_runs {
    struct workload_times *workloads; /* uthash by workload, the latest last */
    struct model_errors *models;      /* uthash by model, the latest last */
};

struct past_runs *past_runs_new(void)
{
    return xcalloc(1, sizeof(struct past_runs));
}

void past_runs_free(struct past_runs *runs)
{
    struct workload_times *times, *next_times;
    struct model_errors *errors, *next_errors;

    if (!runs)
        return;
    HASH_ITER (hh, runs->workloads, times, next_times) {
        HASH_DEL(runs->workloads, times);
        free(times);
    }
    HASH_ITER (hh, runs->models, errors, next_errors) {
        HASH_DEL(runs->models, errors);
        free(errors);
    }
    free(runs);
}

/* ---- Run times ---- */

static void add_time(struct past_runs *runs, const char *workload, int64_t time_ns)
{
    struct workload_times *times;

    HASH_FIND_STR(runs->workloads, workload, times);
    if (times) {
        HASH_DEL(runs->workloads, times);
    } else {
        times = xcalloc(1, sizeof *times + strlen(workload) + 1);
        memcpy(times->workload, workload, strlen(workload) + 1);
    }
    times->times_ns[times->next] = time_ns;
    times->next = (times->next + 1) % PAST_RUNS_KEPT;
    times->count += times->count < PAST_RUNS_KEPT;
    HASH_ADD_STR(runs->workloads, workload, times);
    if (HASH_COUNT(runs->workloads) > PAST_RUNS_MOST) {
        struct workload_times *oldest = runs->workloads;
        HASH_DEL(runs->workloads, oldest);
        free(oldest);
    }
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static json_t *quantile(const int64_t *sorted, uint32_t count, uint32_t permille)
{
    return json_integer(sorted[(count * permille + 999) / 1000 - 1]);
}

json_t *past_runs_times(const struct past_runs *runs, const char *workload)
{
    const struct workload_times *times;
    int64_t sorted[PAST_RUNS_KEPT];

    HASH_FIND_STR(runs->workloads, workload, times);
    if (!times)
        return json_null();
    memcpy(sorted, times->times_ns, times->count * sizeof *sorted);
    qsort(sorted, times->count, sizeof *sorted, compare);
    return json_pack("{s:i, s:o, s:o, s:o}", "runs", (int)times->count, "median_ns",
                     quantile(sorted, times->count, 500), "low_ns", quantile(sorted, times->count, 100), "high_ns",
                     quantile(sorted, times->count, 900));
}

/* ---- SM activity ---- */

static void add_error(struct past_runs *runs, const char *model, int32_t error_permille)
{
    struct model_errors *errors;

    HASH_FIND_STR(runs->models, model, errors);
    if (errors) {
        HASH_DEL(runs->models, errors);
    } else {
        errors = xcalloc(1, sizeof *errors + strlen(model) + 1);
        memcpy(errors->model, model, strlen(model) + 1);
    }
    errors->errors.count++;
    errors->errors.sum_permille += error_permille;
    HASH_ADD_STR(runs->models, model, errors);
    if (HASH_COUNT(runs->models) > PAST_RUNS_MOST) {
        struct model_errors *oldest = runs->models;
        HASH_DEL(runs->models, oldest);
        free(oldest);
    }
}

static bool same_family(const char *a, const char *b)
{
    size_t length = strcspn(a, " ");

    return length == strcspn(b, " ") && memcmp(a, b, length) == 0;
}

void past_runs_correct(const struct past_runs *runs, struct job_estimate *estimate)
{
    struct shrinkage_errors others = {0}, own = {0};

    if (!estimate->model)
        return;
    for (const struct model_errors *model = runs->models; model; model = model->hh.next) {
        if (strcmp(model->model, estimate->model) == 0) {
            own = model->errors;
        } else if (same_family(model->model, estimate->model)) {
            others.count++;
            others.sum_permille += shrinkage_mean(&model->errors);
        }
    }
    estimate->smact_permille = shrinkage_apply(estimate->uncorrected_permille, &others, &own);
}

/* ---- Ended jobs ---- */

void past_runs_end(struct past_runs *runs, const struct store_history *row)
{
    int64_t time_ns = row->ended_ns - row->started_ns;

    if (strcmp(row->state, job_state_name(JOB_COMPLETED)) != 0)
        return;
    if (*row->workload && row->started_ns >= 0 && time_ns >= 0)
        add_time(runs, row->workload, time_ns);
    if (*row->model && row->activity_permille > 0)
        add_error(runs, row->model,
                  (int32_t)(row->activity_permille -
                            (row->estimated_permille < 0 ? SHRINKAGE_PRIOR_PERMILLE : row->estimated_permille)));
}

struct loading {
    struct past_runs *runs;
    struct store_history *rows; /* the latest first; workload and model are owned */
    size_t count, capacity;
};

static int take_row(const struct store_history *row, void *user, struct error *err)
{
    struct loading *loading = user;

    (void)err;
    array_reserve(loading->rows, loading->capacity, loading->count + 1);
    loading->rows[loading->count++] = (struct store_history){.state = job_state_name(JOB_COMPLETED),
                                                             .started_ns = row->started_ns,
                                                             .ended_ns = row->ended_ns,
                                                             .workload = xstrdup(row->workload),
                                                             .model = xstrdup(row->model),
                                                             .estimated_permille = row->estimated_permille,
                                                             .activity_permille = row->activity_permille};
    return 0;
}

int past_runs_load(struct past_runs *runs, const char *directory, struct error *err)
{
    const struct store_history_filter filter = {.since_ns = INT64_MIN,
                                                .until_ns = INT64_MAX,
                                                .state = job_state_name(JOB_COMPLETED),
                                                .most = PAST_RUNS_MOST,
                                                .latest_first = true};
    const struct store_deadline deadline = {.deadline_ns = INT64_MAX};
    struct loading loading = {.runs = runs};
    int rc = store_read_history(directory, &filter, &deadline, take_row, &loading, err);

    while (loading.count > 0) {
        struct store_history *row = &loading.rows[--loading.count];
        if (!rc)
            past_runs_end(runs, row);
        free((char *)row->workload);
        free((char *)row->model);
    }
    free(loading.rows);
    return rc;
}
