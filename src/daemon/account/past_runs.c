#include "daemon/account/past_runs.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fold.h"
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
    struct shrinkage_errors own;  /* of its runs */
    struct shrinkage_errors told; /* of those that others are told of */
    UT_hash_handle hh;
    char model[]; /* "cnn 102228128" */
};

struct user_runs {
    uint32_t uid;
    struct workload_times *workloads; /* uthash by workload, the latest last */
    struct model_errors *models;      /* uthash by model, the latest last */
    UT_hash_handle hh;
};

struct past_runs {
    struct user_runs *users; /* uthash by uid */
    size_t count;            /* workloads and models of all of them */
};

struct past_runs *past_runs_new(void)
{
    return xcalloc(1, sizeof(struct past_runs));
}

static struct user_runs *find_user(const struct past_runs *runs, uint32_t uid)
{
    struct user_runs *user;

    HASH_FIND(hh, runs->users, &uid, sizeof uid, user);
    return user;
}

static void drop_workload(struct past_runs *runs, struct user_runs *user, struct workload_times *times)
{
    HASH_DEL(user->workloads, times);
    free(times);
    runs->count--;
}

static void drop_model(struct past_runs *runs, struct user_runs *user, struct model_errors *errors)
{
    HASH_DEL(user->models, errors);
    free(errors);
    runs->count--;
}

static void drop_user(struct past_runs *runs, struct user_runs *user)
{
    while (user->workloads)
        drop_workload(runs, user, user->workloads);
    while (user->models)
        drop_model(runs, user, user->models);
    HASH_DEL(runs->users, user);
    free(user);
}

void past_runs_free(struct past_runs *runs)
{
    while (runs && runs->users)
        drop_user(runs, runs->users);
    free(runs);
}

void past_runs_forget(struct past_runs *runs, bool of_user, uint32_t uid, const char *workload)
{
    struct user_runs *user, *next;

    HASH_ITER (hh, runs->users, user, next) {
        struct workload_times *times;
        if (of_user && user->uid != uid)
            continue;
        if (!*workload) {
            drop_user(runs, user);
            continue;
        }
        HASH_FIND_STR(user->workloads, workload, times);
        if (times)
            drop_workload(runs, user, times);
    }
}

/* ---- Run times ---- */

static void add_time(struct past_runs *runs, struct user_runs *user, const char *workload, int64_t time_ns)
{
    struct workload_times *times;

    HASH_FIND_STR(user->workloads, workload, times);
    if (times) {
        HASH_DEL(user->workloads, times);
    } else {
        times = xcalloc(1, sizeof *times + strlen(workload) + 1);
        memcpy(times->workload, workload, strlen(workload) + 1);
        runs->count++;
    }
    times->times_ns[times->next] = time_ns;
    times->next = (times->next + 1) % PAST_RUNS_KEPT;
    times->count += times->count < PAST_RUNS_KEPT;
    HASH_ADD_STR(user->workloads, workload, times);
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

static const struct workload_times *find_workload(const struct past_runs *runs, uint32_t uid, const char *workload)
{
    const struct user_runs *user = find_user(runs, uid);
    const struct workload_times *times = NULL;

    if (user)
        HASH_FIND_STR(user->workloads, workload, times);
    return times;
}

#define OF_EACH 8 /* of a workload, where those of several count */

/* Some of the latest of each workload of the user; later workloads take the places of earlier ones. */
static void take_latest(const struct user_runs *user, int64_t times_ns[static PAST_RUNS_LIKE], size_t *taken)
{
    for (const struct workload_times *times = user->workloads; times; times = times->hh.next)
        for (uint32_t i = 0; i < times->count && i < OF_EACH; i++)
            times_ns[(*taken)++ % PAST_RUNS_LIKE] =
                times->times_ns[(times->next + PAST_RUNS_KEPT - 1 - i) % PAST_RUNS_KEPT];
}

size_t past_runs_like(const struct past_runs *runs, enum past_runs_of whose, uint32_t uid, const char *workload,
                      int64_t times_ns[static PAST_RUNS_LIKE])
{
    const struct workload_times *times = whose == PAST_RUNS_OF_WORKLOAD ? find_workload(runs, uid, workload) : NULL;
    size_t count = 0;

    if (times)
        memcpy(times_ns, times->times_ns, (count = times->count) * sizeof *times_ns);
    for (const struct user_runs *user = runs->users; user && whose != PAST_RUNS_OF_WORKLOAD; user = user->hh.next)
        if (whose == PAST_RUNS_OF_ALL || user->uid == uid)
            take_latest(user, times_ns, &count);
    if (whose != PAST_RUNS_OF_WORKLOAD && count < PAST_RUNS_LEAST)
        return 0;
    count = count < PAST_RUNS_LIKE ? count : PAST_RUNS_LIKE;
    qsort(times_ns, count, sizeof *times_ns, compare);
    return count;
}

json_t *past_runs_times(const struct past_runs *runs, uint32_t uid, const char *workload)
{
    int64_t sorted[PAST_RUNS_LIKE];
    uint32_t count = (uint32_t)past_runs_like(runs, PAST_RUNS_OF_WORKLOAD, uid, workload, sorted);

    if (!count)
        return json_null();
    return json_pack("{s:i, s:o, s:o, s:o}", "runs", (int)count, "median_ns", quantile(sorted, count, 500), "low_ns",
                     quantile(sorted, count, 100), "high_ns", quantile(sorted, count, 900));
}

/* ---- SM activity ---- */

static void count_error(struct shrinkage_errors *errors, int32_t error_permille)
{
    errors->count++;
    errors->sum_permille += error_permille;
}

static void add_error(struct past_runs *runs, struct user_runs *user, const char *model, int32_t error_permille,
                      bool tells)
{
    struct model_errors *errors;

    HASH_FIND_STR(user->models, model, errors);
    if (errors) {
        HASH_DEL(user->models, errors);
    } else {
        errors = xcalloc(1, sizeof *errors + strlen(model) + 1);
        memcpy(errors->model, model, strlen(model) + 1);
        runs->count++;
    }
    count_error(&errors->own, error_permille);
    if (tells)
        count_error(&errors->told, error_permille);
    HASH_ADD_STR(user->models, model, errors);
}

static bool same_family(const char *a, const char *b)
{
    size_t length = strcspn(a, " ");

    return length == strcspn(b, " ") && memcmp(a, b, length) == 0;
}

/* The estimate by one user's runs; -1: these say nothing of it. */
static int64_t corrected(const struct user_runs *user, const struct job_estimate *estimate, bool told)
{
    struct shrinkage_errors others = {0}, same = {0};

    for (const struct model_errors *model = user ? user->models : NULL; model; model = model->hh.next) {
        const struct shrinkage_errors *errors = told ? &model->told : &model->own;
        if (strcmp(model->model, estimate->model) == 0)
            same = *errors;
        else if (errors->count && same_family(model->model, estimate->model))
            count_error(&others, shrinkage_mean(errors));
    }
    return others.count + same.count ? shrinkage_apply(estimate->uncorrected_permille, &others, &same) : -1;
}

void past_runs_correct(const struct past_runs *runs, uint32_t uid, struct job_estimate *estimate)
{
    CLEANUP(free_ptr) int64_t *figures = NULL;
    int64_t own, mine = -1, published = estimate->uncorrected_permille, folded;
    size_t count = 0;

    if (!estimate->model)
        return;
    figures = xcalloc(HASH_COUNT(runs->users) + 1, sizeof *figures);
    for (const struct user_runs *user = runs->users; user; user = user->hh.next) {
        int64_t figure = corrected(user, estimate, true);
        if (figure < 0)
            continue;
        figures[count++] = figure;
        mine = user->uid == uid ? figure : mine;
    }
    qsort(figures, count, sizeof *figures, compare);
    own = corrected(find_user(runs, uid), estimate, false);
    own = own >= 0 ? own : published;
    folded = fold_users(own >= 0 ? own : SHRINKAGE_PRIOR_PERMILLE, figures, count, mine);
    if (own >= 0 || folded != SHRINKAGE_PRIOR_PERMILLE)
        own = folded;
    estimate->smact_permille = (int32_t)(own > SHRINKAGE_MOST_PERMILLE ? SHRINKAGE_MOST_PERMILLE : own);
}

uint32_t past_runs_models(const struct past_runs *runs, uint32_t uid)
{
    const struct user_runs *user = find_user(runs, uid);

    return user ? HASH_COUNT(user->models) : 0;
}

/* ---- Ended jobs ---- */

#define TELLS_NS (60 * NS_PER_SEC)

static uint32_t count_of(const struct user_runs *user)
{
    return HASH_COUNT(user->workloads) + HASH_COUNT(user->models);
}

/* Nobody pushes out what is known of others. */
static void make_room(struct past_runs *runs)
{
    struct user_runs *most = runs->users;

    for (struct user_runs *user = runs->users; user; user = user->hh.next)
        if (count_of(user) > count_of(most))
            most = user;
    if (HASH_COUNT(most->workloads) > HASH_COUNT(most->models))
        drop_workload(runs, most, most->workloads);
    else
        drop_model(runs, most, most->models);
}

void past_runs_end(struct past_runs *runs, const struct store_history *row)
{
    int64_t time_ns = row->ended_ns - row->started_ns;
    struct user_runs *user = find_user(runs, row->uid);

    if (strcmp(row->state, job_state_name(JOB_COMPLETED)) != 0)
        return;
    if (!user) {
        user = xcalloc(1, sizeof *user);
        user->uid = row->uid;
        HASH_ADD(hh, runs->users, uid, sizeof user->uid, user);
    }
    if (*row->workload && row->started_ns >= 0 && time_ns >= 0)
        add_time(runs, user, row->workload, time_ns);
    if (*row->model && row->activity_permille > 0)
        add_error(runs, user, row->model,
                  (int32_t)(row->activity_permille -
                            (row->estimated_permille < 0 ? SHRINKAGE_PRIOR_PERMILLE : row->estimated_permille)),
                  row->started_ns >= 0 && time_ns >= TELLS_NS && row->activity_permille > PAST_RUNS_IDLE);
    while (runs->count > PAST_RUNS_MOST)
        make_room(runs);
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
    loading->rows[loading->count] = *row;
    loading->rows[loading->count].state = job_state_name(JOB_COMPLETED);
    loading->rows[loading->count].workload = xstrdup(row->workload);
    loading->rows[loading->count++].model = xstrdup(row->model);
    return 0;
}

static int load_user(struct past_runs *runs, const char *directory, uint32_t uid, uint32_t most, struct error *err)
{
    CLEANUP(free_ptr) char *number = xasprintf("%" PRIu32, uid);
    const struct store_history_filter filter = {.since_ns = INT64_MIN,
                                                .until_ns = INT64_MAX,
                                                .user = number,
                                                .state = job_state_name(JOB_COMPLETED),
                                                .most = most,
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

int past_runs_load(struct past_runs *runs, const char *directory, const uint32_t *uids, size_t count, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++)
        rc = load_user(runs, directory, uids[i], (uint32_t)(PAST_RUNS_MOST / count) + 1, err);
    return rc;
}
