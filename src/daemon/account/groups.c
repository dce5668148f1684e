#include "daemon/account/groups.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/or_null.h"
#include "base/hash.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/old_names.h"
#include "base/units.h"

#define SECONDS_PER_DAY 86400

/* Numbers with quantiles. Few are kept as they are; beyond that, only counts of buckets are kept, each a sixty-fourth
 * of a power of two. Any number of them takes 20 KiB, and a quantile is good to a hundredth. */
#define FIGURES_EXACT     4096
#define BUCKETS_PER_POWER 64
#define POWERS            80 /* the largest ratio of two 63-bit numbers in permille is below 2^73 */

struct figures {
    double *items;     /* owned; NULL once there are buckets */
    uint32_t *buckets; /* owned */
    size_t count, capacity;
};

struct group {
    char *key;   /* owned: the text, or the bytes of the number */
    char *label; /* owned: its name */
    int64_t number;
    int64_t jobs;
    struct history_sums sums;
    struct figures waits;  /* ns */
    struct figures ratios; /* of the reservation to the peak, in permille */
    int64_t under;         /* of these, those with a smaller request */
    UT_hash_handle hh;
};

struct groups {
    enum groups_key key;
    bool scaled;
    struct group *groups; /* uthash by key */
    struct group total;
    size_t bytes;            /* of all figures */
    int64_t from_s, until_s; /* the day or the month that was looked up last */
    char label[64];
};

static const struct {
    const char *name;
    const char *list;
} keys[GROUPS_KEY_COUNT] = {
    [GROUPS_BY_USER] = {"user", "users"},
    [GROUPS_BY_NAME] = {"name", "names"},
    [GROUPS_BY_DAY] = {"day", "days"},
    [GROUPS_BY_MONTH] = {"month", "months"},
    [GROUPS_BY_ACCOUNT] = {"account", "accounts"},
    [GROUPS_BY_STATE] = {"state", "states"},
    [GROUPS_BY_SOURCE] = {"source", "sources"},
};

const char *groups_key_text(enum groups_key key)
{
    return key == GROUPS_BY_USER      ? "user"
           : key == GROUPS_BY_NAME    ? "name"
           : key == GROUPS_BY_ACCOUNT ? "account"
           : key == GROUPS_BY_SOURCE  ? "reservation_source" /* the column */
                                      : NULL;
}

enum groups_key groups_key_find(const char *name)
{
    enum groups_key key = 0;

    while (key < GROUPS_KEY_COUNT && strcmp(keys[key].name, present_name(name)) != 0)
        key++;
    return key;
}

struct groups *groups_new(enum groups_key key, bool scaled)
{
    struct groups *groups = xcalloc(1, sizeof *groups);

    groups->key = key;
    groups->scaled = scaled;
    return groups;
}

static void group_release(struct group *group)
{
    free(group->key);
    free(group->label);
    free(group->waits.items);
    free(group->waits.buckets);
    free(group->ratios.items);
    free(group->ratios.buckets);
}

void groups_free(struct groups *groups)
{
    struct group *group, *next;

    if (!groups)
        return;
    HASH_ITER (hh, groups->groups, group, next) {
        HASH_DEL(groups->groups, group);
        group_release(group);
        free(group);
    }
    group_release(&groups->total);
    free(groups);
}

/* ---- Which group ---- */

/* The day or month that holds the second. */
static void look_up_time(struct groups *groups, int64_t second)
{
    struct tm first, next;
    time_t at = second;

    if (groups->scaled || !localtime_r(&at, &first)) {
        groups->from_s = second - ((second % SECONDS_PER_DAY) + SECONDS_PER_DAY) % SECONDS_PER_DAY;
        groups->until_s = groups->from_s + SECONDS_PER_DAY;
        snprintf(groups->label, sizeof groups->label, "day %lld", (long long)(groups->from_s / SECONDS_PER_DAY));
        return;
    }
    first.tm_sec = first.tm_min = first.tm_hour = 0;
    if (groups->key == GROUPS_BY_MONTH)
        first.tm_mday = 1;
    first.tm_isdst = -1;
    next = first;
    if (groups->key == GROUPS_BY_MONTH)
        next.tm_mon++;
    else
        next.tm_mday++;
    groups->from_s = mktime(&first);
    groups->until_s = mktime(&next);
    strftime(groups->label, sizeof groups->label, groups->key == GROUPS_BY_MONTH ? "%Y-%m" : "%Y-%m-%d", &first);
}

static struct group *group_of_key(struct groups *groups, const void *key, size_t length, const char *label,
                                  int64_t number)
{
    struct group *group;

    HASH_FIND(hh, groups->groups, key, length, group);
    if (group || HASH_COUNT(groups->groups) >= GROUPS_MOST_GROUPS)
        return group;
    group = xcalloc(1, sizeof *group);
    group->key = xmalloc(length + 1);
    memcpy(group->key, key, length);
    group->label = xstrdup(label);
    group->number = number;
    HASH_ADD_KEYPTR(hh, groups->groups, group->key, length, group);
    return group;
}

static struct group *group_of(struct groups *groups, const struct store_history *row)
{
    int64_t number = row->uid, ended_ns = nodetime_shown_ns(row->ended_ns);
    int64_t second = ended_ns > 0 ? ended_ns / NS_PER_SEC : 0;
    const char *text = groups->key == GROUPS_BY_NAME      ? row->name
                       : groups->key == GROUPS_BY_STATE   ? row->state
                       : groups->key == GROUPS_BY_ACCOUNT ? (row->account ? row->account : "")
                                                          : row->reservation_source;

    switch (groups->key) {
    case GROUPS_BY_USER:
        return group_of_key(groups, &number, sizeof number, row->user, number);
    case GROUPS_BY_DAY:
    case GROUPS_BY_MONTH:
        if (second < groups->from_s || second >= groups->until_s)
            look_up_time(groups, second);
        number = groups->from_s;
        return group_of_key(groups, &number, sizeof number, groups->label, number);
    default:
        return group_of_key(groups, text, strlen(text), text, 0);
    }
}

/* ---- Sums ---- */

static size_t bucket_of(double value)
{
    int power;
    double fraction = frexp(value, &power); /* of 0.5 to 1 */

    return value < 1 ? 0 : (size_t)power * BUCKETS_PER_POWER + (size_t)((fraction - 0.5) * 2 * BUCKETS_PER_POWER);
}

static size_t size_of(const struct figures *figures)
{
    return figures->buckets ? POWERS * BUCKETS_PER_POWER * sizeof *figures->buckets
                            : figures->capacity * sizeof *figures->items;
}

static void add_figure(struct groups *groups, struct figures *figures, double value)
{
    size_t before = size_of(figures);

    if (figures->count == FIGURES_EXACT) {
        figures->buckets = xcalloc(POWERS * BUCKETS_PER_POWER, sizeof *figures->buckets);
        for (size_t i = 0; i < figures->count; i++)
            figures->buckets[bucket_of(figures->items[i])]++;
        free_ptr(&figures->items);
        figures->capacity = 0;
    }
    if (figures->buckets) {
        figures->buckets[bucket_of(value)]++;
    } else {
        array_reserve(figures->items, figures->capacity, figures->count + 1);
        figures->items[figures->count] = value;
    }
    figures->count++;
    groups->bytes += size_of(figures) - before;
}

static void add_figures(struct groups *groups, struct group *group, const struct store_history *row)
{
    if (row->wait_ns >= 0)
        add_figure(groups, &group->waits, (double)row->wait_ns);
    if (row->reserved_bytes >= 0 && row->peak_bytes > 0) {
        add_figure(groups, &group->ratios, (double)row->reserved_bytes * 1000 / (double)row->peak_bytes);
        group->under += row->reserved_bytes < row->peak_bytes;
    }
}

int groups_add(struct groups *groups, const struct store_history *row, struct error *err)
{
    struct group *group = group_of(groups, row);

    if (!group || groups->bytes > GROUPS_MOST_BYTES)
        return error_set(err, E2BIG,
                         "too many %s (%u) to sum up at once: ask for a shorter span, or for a name such as 'train*'",
                         keys[groups->key].list, HASH_COUNT(groups->groups));
    group->jobs++;
    history_sums_add(&group->sums, row);
    add_figures(groups, group, row);
    add_figures(groups, &groups->total, row);
    return 0;
}

/* ---- Figures ---- */

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The figure that `permille` of them do not exceed, by the nearest rank; -1: there are none. */
static double quantile(const struct figures *figures, size_t permille)
{
    size_t rank = (figures->count * permille + 999) / 1000, bucket = 0;

    if (!figures->count)
        return -1;
    if (!figures->buckets) {
        qsort(figures->items, figures->count, sizeof *figures->items, compare);
        return figures->items[rank ? rank - 1 : 0];
    }
    for (size_t seen = figures->buckets[0]; seen < rank; seen += figures->buckets[++bucket])
        ;
    return bucket < BUCKETS_PER_POWER
               ? 0
               : ldexp(0.5 + ((double)(bucket % BUCKETS_PER_POWER) + 0.5) / (2 * BUCKETS_PER_POWER),
                       (int)(bucket / BUCKETS_PER_POWER));
}

static json_t *figure_or_null(double value)
{
    return value < 0 ? json_null() : json_integer(value < 9e18 ? (json_int_t)value : INT64_MAX);
}

/* Of a sum that has stopped at the largest number (a thousand jobs that wait come to that in four months) there is
 * none. */
static json_t *mean_wait_or_null(const struct history_sums *sums)
{
    return sums->launched > 0 && sums->wait_ns < INT64_MAX ? json_integer(sums->wait_ns / sums->launched) : json_null();
}

/* ---- JSON ---- */

void groups_numbers(json_t *json, int64_t jobs, const struct history_sums *sums)
{
    json_t *states = json_object();
    int64_t ended = 0;

    for (uint32_t state = JOB_COMPLETED; state <= JOB_LAST_ENDED; state++) {
        json_object_set_new(states, job_state_name(state), json_integer(sums->ended[state]));
        history_add(&ended, sums->ended[state]);
    }
    json_object_set_new(json, "jobs", json_integer(jobs));
    json_object_set_new(json, "ended", json_integer(ended));
    json_object_set_new(json, "states", states);
    json_object_set_new(json, "gpu_ns", json_integer(sums->gpu_ns));
    json_object_set_new(json, "memory_mib_ms", json_integer(sums->memory_mib_ms));
    json_object_set_new(json, "modelled_energy_mj", json_integer(sums->energy_mj));
    json_object_set_new(json, "launched", json_integer(sums->launched));
    json_object_set_new(json, "wait_ns", json_integer(sums->wait_ns));
    json_object_set_new(json, "oom_crashes", json_integer(sums->oom_crashes));
    json_object_set_new(json, "handle_crashes", json_integer(sums->handle_crashes));
    json_object_set_new(json, "retries", json_integer(sums->retries));
}

static json_t *group_to_json(const struct groups *groups, struct group *group)
{
    json_t *json = json_object();

    if (group != &groups->total) {
        json_object_set_new(json, keys[groups->key].name, text_or_null(*group->label ? group->label : NULL));
        if (groups->key == GROUPS_BY_USER)
            json_object_set_new(json, "uid", json_integer(group->number));
        if (groups->key == GROUPS_BY_DAY || groups->key == GROUPS_BY_MONTH)
            moment_set(json, "from_ns", group->number * NS_PER_SEC, true);
    }
    groups_numbers(json, group->jobs, &group->sums);
    json_object_set_new(json, "wait_mean_ns", mean_wait_or_null(&group->sums));
    json_object_set_new(json, "wait_p95_ns", figure_or_null(quantile(&group->waits, 950)));
    json_object_set_new(json, "compared", json_integer((json_int_t)group->ratios.count));
    json_object_set_new(json, "reserved_to_peak_permille", figure_or_null(quantile(&group->ratios, 500)));
    json_object_set_new(json, "under_permille",
                        group->ratios.count ? json_integer(group->under * 1000 / (json_int_t)group->ratios.count)
                                            : json_null());
    return json;
}

static int by_time(const struct group *a, const struct group *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_use(const struct group *a, const struct group *b)
{
    if (a->sums.gpu_ns != b->sums.gpu_ns)
        return a->sums.gpu_ns > b->sums.gpu_ns ? -1 : 1;
    return strcmp(a->label, b->label);
}

static void sum_up(struct groups *groups)
{
    struct group *total = &groups->total;

    for (const struct group *group = groups->groups; group; group = group->hh.next) {
        int64_t *sums = (int64_t *)&total->sums;
        const int64_t *more = (const int64_t *)&group->sums;

        total->jobs += group->jobs;
        for (size_t i = 0; i < sizeof total->sums / sizeof *sums; i++)
            history_add(&sums[i], more[i]);
    }
}

json_t *groups_to_json(struct groups *groups)
{
    bool timed = groups->key == GROUPS_BY_DAY || groups->key == GROUPS_BY_MONTH;
    size_t count = HASH_COUNT(groups->groups);
    json_t *list = json_array();

    sum_up(groups);
    HASH_SORT(groups->groups, by_use);
    while (HASH_COUNT(groups->groups) > GROUPS_LISTED) { /* those with the least */
        struct group *last = ELMT_FROM_HH(groups->groups->hh.tbl, groups->groups->hh.tbl->tail);
        HASH_DEL(groups->groups, last);
        group_release(last);
        free(last);
    }
    if (timed)
        HASH_SORT(groups->groups, by_time);
    for (struct group *group = groups->groups; group; group = group->hh.next)
        json_array_append_new(list, group_to_json(groups, group));
    return json_pack("{s:s, s:o, s:I, s:o}", "by", keys[groups->key].name, keys[groups->key].list, list, "left_out",
                     (json_int_t)(count - json_array_size(list)), "total", group_to_json(groups, &groups->total));
}
