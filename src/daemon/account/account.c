#include "daemon/account/account.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/units.h"

#define SECONDS_PER_DAY 86400

/* Numbers with quantiles: kept as they are while they are few, then only as counts of buckets, each a sixty-fourth of a
 * power of two: any number of them takes 20 KiB, and a quantile is good to a hundredth. */
#define FIGURES_EXACT 4096
#define BUCKETS_PER_POWER 64
#define POWERS 80 /* the largest ratio of two 63-bit numbers in permille is below 2^73 */

struct figures {
    double *items;    /* owned; NULL once there are buckets */
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
    struct figures ratios; /* of the claim to the peak, in permille */
    int64_t under;         /* of these, those with a smaller request */
    UT_hash_handle hh;
};

struct account {
    enum account_key key;
    bool scaled;
    struct group *groups; /* uthash by key */
    struct group total;
    size_t bytes; /* of all figures */
    int64_t from_s, until_s; /* the day or the month that was looked up last */
    char label[64];
};

static const struct {
    const char *name;
    const char *list;
} keys[ACCOUNT_KEY_COUNT] = {
    [ACCOUNT_BY_USER] = {"user", "users"},    [ACCOUNT_BY_NAME] = {"name", "names"},
    [ACCOUNT_BY_DAY] = {"day", "days"},       [ACCOUNT_BY_MONTH] = {"month", "months"},
    [ACCOUNT_BY_STATE] = {"state", "states"}, [ACCOUNT_BY_CLAIM] = {"claim", "claims"},
};

const char *account_key_name(enum account_key key)
{
    return keys[key].name;
}

const char *account_list_name(enum account_key key)
{
    return keys[key].list;
}

const char *account_key_text(enum account_key key)
{
    return key == ACCOUNT_BY_USER    ? "user"
           : key == ACCOUNT_BY_NAME  ? "name"
           : key == ACCOUNT_BY_CLAIM ? "claim_source"
                                     : NULL;
}

enum account_key account_key_find(const char *name)
{
    enum account_key key = 0;

    while (key < ACCOUNT_KEY_COUNT && strcmp(keys[key].name, name) != 0)
        key++;
    return key;
}

struct account *account_new(enum account_key key, bool scaled)
{
    struct account *account = xcalloc(1, sizeof *account);

    account->key = key;
    account->scaled = scaled;
    return account;
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

void account_free(struct account *account)
{
    struct group *group, *next;

    if (!account)
        return;
    HASH_ITER(hh, account->groups, group, next)
    {
        HASH_DEL(account->groups, group);
        group_release(group);
        free(group);
    }
    group_release(&account->total);
    free(account);
}

/* ---- Which group ---- */

/* The day or month that holds the second. */
static void look_up_time(struct account *account, int64_t second)
{
    struct tm first, next;
    time_t at = second;

    if (account->scaled || !localtime_r(&at, &first)) {
        account->from_s = second - ((second % SECONDS_PER_DAY) + SECONDS_PER_DAY) % SECONDS_PER_DAY;
        account->until_s = account->from_s + SECONDS_PER_DAY;
        snprintf(account->label, sizeof account->label, "day %lld", (long long)(account->from_s / SECONDS_PER_DAY));
        return;
    }
    first.tm_sec = first.tm_min = first.tm_hour = 0;
    if (account->key == ACCOUNT_BY_MONTH)
        first.tm_mday = 1;
    first.tm_isdst = -1;
    next = first;
    if (account->key == ACCOUNT_BY_MONTH)
        next.tm_mon++;
    else
        next.tm_mday++;
    account->from_s = mktime(&first);
    account->until_s = mktime(&next);
    strftime(account->label, sizeof account->label, account->key == ACCOUNT_BY_MONTH ? "%Y-%m" : "%Y-%m-%d", &first);
}

static struct group *group_of_key(struct account *account, const void *key, size_t length, const char *label,
                                  int64_t number)
{
    struct group *group;

    HASH_FIND(hh, account->groups, key, length, group);
    if (group || HASH_COUNT(account->groups) >= ACCOUNT_MOST_GROUPS)
        return group;
    group = xcalloc(1, sizeof *group);
    group->key = xmalloc(length + 1);
    memcpy(group->key, key, length);
    group->label = xstrdup(label);
    group->number = number;
    HASH_ADD_KEYPTR(hh, account->groups, group->key, length, group);
    return group;
}

static struct group *group_of(struct account *account, const struct store_history *row)
{
    int64_t number = row->uid, second = row->ended_ns > 0 ? row->ended_ns / NS_PER_SEC : 0;
    const char *text = account->key == ACCOUNT_BY_NAME    ? row->name
                       : account->key == ACCOUNT_BY_STATE ? row->state
                                                          : row->claim_source;

    switch (account->key) {
    case ACCOUNT_BY_USER:
        return group_of_key(account, &number, sizeof number, row->user, number);
    case ACCOUNT_BY_DAY:
    case ACCOUNT_BY_MONTH:
        if (second < account->from_s || second >= account->until_s)
            look_up_time(account, second);
        number = account->from_s;
        return group_of_key(account, &number, sizeof number, account->label, number);
    default:
        return group_of_key(account, text, strlen(text), text, 0);
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

static void add_figure(struct account *account, struct figures *figures, double value)
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
    account->bytes += size_of(figures) - before;
}

static void add_figures(struct account *account, struct group *group, const struct store_history *row)
{
    if (row->wait_ns >= 0)
        add_figure(account, &group->waits, (double)row->wait_ns);
    if (row->claim_bytes >= 0 && row->peak_bytes > 0) {
        add_figure(account, &group->ratios, (double)row->claim_bytes * 1000 / (double)row->peak_bytes);
        group->under += row->claim_bytes < row->peak_bytes;
    }
}

int account_add(struct account *account, const struct store_history *row, struct error *err)
{
    struct group *group = group_of(account, row);

    if (!group || account->bytes > ACCOUNT_MOST_BYTES)
        return error_set(err, E2BIG, "too many %s (%u) to sum up at once: ask for a shorter span, or for a name such as "
                         "'train*'", keys[account->key].list, HASH_COUNT(account->groups));
    group->jobs++;
    history_sums_add(&group->sums, row);
    add_figures(account, group, row);
    add_figures(account, &account->total, row);
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

/* ---- JSON ---- */

void account_numbers(json_t *json, int64_t jobs, const struct history_sums *sums)
{
    json_t *states = json_object();
    int64_t ended = 0;

    for (uint32_t state = JOB_COMPLETED; state < JOB_STATE_COUNT; state++) {
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
    json_object_set_new(json, "recoveries", json_integer(sums->recoveries));
}

static json_t *group_to_json(const struct account *account, struct group *group)
{
    json_t *json = json_object();

    if (group != &account->total) {
        json_object_set_new(json, keys[account->key].name, json_string(group->label));
        if (account->key == ACCOUNT_BY_USER)
            json_object_set_new(json, "uid", json_integer(group->number));
        if (account->key == ACCOUNT_BY_DAY || account->key == ACCOUNT_BY_MONTH)
            json_object_set_new(json, "from_ns", json_integer(group->number * NS_PER_SEC));
    }
    account_numbers(json, group->jobs, &group->sums);
    json_object_set_new(json, "wait_p95_ns", figure_or_null(quantile(&group->waits, 950)));
    json_object_set_new(json, "compared", json_integer((json_int_t)group->ratios.count));
    json_object_set_new(json, "claim_to_peak_permille", figure_or_null(quantile(&group->ratios, 500)));
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

static void sum_up(struct account *account)
{
    struct group *total = &account->total;

    for (const struct group *group = account->groups; group; group = group->hh.next) {
        int64_t *sums = (int64_t *)&total->sums;
        const int64_t *more = (const int64_t *)&group->sums;

        total->jobs += group->jobs;
        for (size_t i = 0; i < sizeof total->sums / sizeof *sums; i++)
            history_add(&sums[i], more[i]);
    }
}

json_t *account_to_json(struct account *account)
{
    bool timed = account->key == ACCOUNT_BY_DAY || account->key == ACCOUNT_BY_MONTH;
    size_t count = HASH_COUNT(account->groups);
    json_t *list = json_array();

    sum_up(account);
    HASH_SORT(account->groups, by_use);
    while (HASH_COUNT(account->groups) > ACCOUNT_LISTED) { /* those with the least */
        struct group *last = ELMT_FROM_HH(account->groups->hh.tbl, account->groups->hh.tbl->tail);
        HASH_DEL(account->groups, last);
        group_release(last);
        free(last);
    }
    if (timed)
        HASH_SORT(account->groups, by_time);
    for (struct group *group = account->groups; group; group = group->hh.next)
        json_array_append_new(list, group_to_json(account, group));
    return json_pack("{s:s, s:o, s:I, s:o}", "by", keys[account->key].name, keys[account->key].list, list, "left_out",
                     (json_int_t)(count - json_array_size(list)), "total", group_to_json(account, &account->total));
}
