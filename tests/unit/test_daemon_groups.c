/* Memory over time of one job, and rows of the accounting summed up in groups. */
#include "unit.h"

#include "daemon/account/groups.h"
#include "daemon/view/memory_usage.h"

/* ---- Memory over time ---- */

TEST(test_memory_is_what_is_held_times_how_long)
{
    struct memory_usage held = {0};

    memory_usage_set(&held, 5 * NS_PER_SEC, GIB, GIB); /* it does not run */
    assert_int_equal(memory_usage_mib_ms(&held, 10 * NS_PER_SEC), 0);
    memory_usage_begin(&held, 10 * NS_PER_SEC);
    assert_int_equal(memory_usage_mib_ms(&held, 12 * NS_PER_SEC), 0); /* not known yet */
    memory_usage_set(&held, 12 * NS_PER_SEC, 3 * GIB, GIB);
    assert_int_equal(memory_usage_mib_ms(&held, 12 * NS_PER_SEC + 250 * NS_PER_MS), 3 * 1024 * 250);
    memory_usage_set(&held, 13 * NS_PER_SEC, GIB, GIB);
    memory_usage_set(&held, 13 * NS_PER_SEC, 2 * GIB, 0); /* at the same moment: the last counts */
    memory_usage_end(&held, 15 * NS_PER_SEC);
    assert_int_equal(held.mib_ms, 1024 * (3000 + 2 * 2000));
    assert_int_equal(held.measured_mib_ms, 1024 * 1000);
    assert_int_equal(memory_usage_mib_ms(&held, 99 * NS_PER_SEC), held.mib_ms);
    memory_usage_begin(&held, 20 * NS_PER_SEC); /* its next launch adds to it */
    memory_usage_set(&held, 20 * NS_PER_SEC, MIB, 0);
    memory_usage_end(&held, 21 * NS_PER_SEC);
    assert_int_equal(held.mib_ms, 1024 * 7000 + 1000);
}

/* Readings do not come by the millisecond: the fraction of one is counted with the next. */
TEST(test_memory_loses_nothing_between_readings)
{
    struct memory_usage held = {0};

    memory_usage_begin(&held, NS_PER_SEC);
    for (int64_t ns = 0; ns <= NS_PER_SEC; ns += 333333)
        memory_usage_set(&held, NS_PER_SEC + ns, 1000 * MIB, 0);
    memory_usage_end(&held, 2 * NS_PER_SEC);
    assert_in_range(held.mib_ms, 999 * 1000, 1000 * 1000);
}

TEST(test_memory_stays_a_number)
{
    struct memory_usage held = {0};

    memory_usage_begin(&held, 1);
    memory_usage_set(&held, 1, INT64_MAX, INT64_MIN);
    memory_usage_set(&held, INT64_MAX, GIB, GIB);
    assert_int_equal(held.mib_ms, INT64_MAX);
    assert_int_equal(held.measured_mib_ms, 0);
    memory_usage_set(&held, 10 * NS_PER_SEC, GIB, GIB); /* a clock that was set back */
    memory_usage_end(&held, 11 * NS_PER_SEC);
    assert_int_equal(held.mib_ms, INT64_MAX);
    assert_int_equal(held.measured_mib_ms, 1024 * 1000);
}

/* ---- Groups ---- */

static struct store_history row_of(uint64_t job)
{
    return (struct store_history){.job = job,
                                  .uid = 1000,
                                  .state = "COMPLETED",
                                  .ended_ns = 1793534400 * NS_PER_SEC, /* 2026-11-01 12:00 UTC */
                                  .wait_ns = -1,
                                  .gpu_ns = NS_PER_SEC,
                                  .reserved_bytes = -1,
                                  .reservation_source = "unknown",
                                  .last_reservation_source = "unknown",
                                  .model = "",
                                  .user = "ana",
                                  .name = "train",
                                  .workload = ""};
}

static int64_t number(const json_t *group, const char *member)
{
    json_t *value = json_object_get(group, member);

    assert_non_null(value);
    return json_is_null(value) ? -1 : json_integer_value(value);
}

static struct groups *groups; /* of the last begin() */
static json_t *json;          /* of the last sum_up() */

static void begin(enum groups_key key)
{
    groups_free(groups);
    groups = groups_new(key, false);
}

static void add(const struct store_history *row)
{
    fail_if(groups_add(groups, row, &trouble), trouble);
}

static void sum_up(void)
{
    json_decref(json);
    json = groups_to_json(groups);
}

TEST(test_quantiles_are_exact_while_few)
{
    begin(GROUPS_BY_NAME);
    for (uint64_t job = 1; job <= 100; job++) {
        struct store_history row = row_of(job);
        row.wait_ns = (int64_t)(job * 37 % 101) * NS_PER_SEC; /* 1 to 100 */
        row.reserved_bytes = (int64_t)job * MIB;
        row.peak_bytes = job % 2 ? 50 * MIB : 0; /* of every other nothing was observed */
        add(&row);
    }
    sum_up();
    json_t *group = json_array_get(json_object_get(json, "names"), 0);
    assert_int_equal(number(group, "wait_p95_ns"), 95 * NS_PER_SEC);
    assert_int_equal(number(group, "wait_ns"), 5050 * NS_PER_SEC);
    assert_int_equal(number(group, "wait_mean_ns"), 50500 * NS_PER_MS);
    assert_int_equal(number(group, "compared"), 50);
    assert_int_equal(number(group, "reserved_to_peak_permille"), 49 * 20);
    assert_int_equal(number(group, "under_permille"), 500);
    assert_true(json_equal(json_object_get(group, "wait_p95_ns"),
                           json_object_get(json_object_get(json, "total"), "wait_p95_ns")));
}

/* Beyond this many, quantiles come from buckets: good to a hundredth, for all values between. */
TEST(test_quantiles_of_many_are_close)
{
    for (int64_t scale = 1; scale <= 1000000000000; scale *= 1000) {
        json_t *total;

        begin(GROUPS_BY_STATE);
        for (int64_t job = 0; job < 20000; job++) {
            struct store_history row = row_of((uint64_t)job + 1);
            row.wait_ns = (100 + job * 7919 % 20000) * scale;
            add(&row);
        }
        sum_up();
        total = json_object_get(json, "total");
        assert_in_range(number(total, "wait_p95_ns"), 19100 * scale / 100 * 99, 19100 * scale / 100 * 101);
        assert_int_equal(number(total, "reserved_to_peak_permille"), -1);
    }
}

TEST(test_extremes_are_numbers)
{
    begin(GROUPS_BY_DAY);
    for (uint64_t job = 1; job <= 5000; job++) {
        struct store_history row = row_of(job);
        row.wait_ns = INT64_MAX;
        row.reserved_bytes = job % 2 ? INT64_MAX : 0;
        row.peak_bytes = 1;
        row.ended_ns = job % 3 == 0 ? INT64_MIN : job % 3 == 1 ? INT64_MAX : 0;
        add(&row);
    }
    sum_up();
    assert_true(number(json_object_get(json, "total"), "reserved_to_peak_permille") >= 0);
    assert_int_equal(number(json_object_get(json, "total"), "wait_ns"), INT64_MAX);
}

/* Days are those of the machine's time zone, also those of 23 and of 25 hours. */
TEST(test_days_begin_at_local_midnight)
{
    static const struct {
        int64_t ended_s;
        const char *day;
    } ends[] = {
        {1792879199, "2026-10-24"}, {1792879200, "2026-10-25"}, {1792969199, "2026-10-25"}, {1792969200, "2026-10-26"}};
    json_t *days;

    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    begin(GROUPS_BY_DAY);
    for (size_t i = array_size(ends); i--;) {
        struct store_history row = row_of(i + 1);
        row.ended_ns = ends[i].ended_s * NS_PER_SEC + 999999999;
        add(&row);
    }
    sum_up();
    days = json_object_get(json, "days");
    assert_int_equal(json_array_size(days), 3);
    for (size_t i = 0, at = 0; i < array_size(ends); i++) {
        at += i == 1 || i == 3;
        assert_string_equal(json_string_value(json_object_get(json_array_get(days, at), "day")), ends[i].day);
    }
    assert_int_equal(number(json_array_get(days, 1), "jobs"), 2);
    assert_int_equal(number(json_array_get(days, 1), "from_ns"), 1792879200 * NS_PER_SEC);

    begin(GROUPS_BY_MONTH);
    struct store_history row = row_of(1);
    add(&row);
    sum_up();
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(json, "months"), 0), "month")),
                        "2026-11");
}

/* The groups with the most are listed, all are counted; and not without end. */
TEST(test_groups_are_bounded)
{
    struct store_history row = row_of(1);
    char name[32];

    begin(GROUPS_BY_NAME);
    for (int i = 1; i <= GROUPS_MOST_GROUPS; i++) {
        snprintf(name, sizeof name, "job-%d", i);
        row.name = name;
        row.gpu_ns = i;
        add(&row);
    }
    row.name = "one too many";
    assert_error(groups_add(groups, &row, &trouble), -E2BIG, "too many names (20000)");
    sum_up();
    assert_int_equal(json_array_size(json_object_get(json, "names")), GROUPS_LISTED);
    assert_int_equal(number(json, "left_out"), GROUPS_MOST_GROUPS - GROUPS_LISTED);
    assert_int_equal(number(json_array_get(json_object_get(json, "names"), 0), "gpu_ns"), GROUPS_MOST_GROUPS);
    assert_int_equal(number(json_object_get(json, "total"), "jobs"), GROUPS_MOST_GROUPS);
    assert_int_equal(number(json_object_get(json, "total"), "gpu_ns"),
                     (int64_t)GROUPS_MOST_GROUPS * (GROUPS_MOST_GROUPS + 1) / 2);
}

/* The memory for quantiles is bounded, too, and so is a group's part of it. */
TEST(test_figures_are_bounded)
{
    struct store_history row = row_of(1);
    char name[32];
    int rc = 0, rows = 0;

    begin(GROUPS_BY_NAME);
    row.name = name;
    row.wait_ns = 5;
    row.reserved_bytes = row.peak_bytes = GIB;
    snprintf(name, sizeof name, "all");
    for (int i = 0; i < 1000000; i++)
        add(&row);
    for (; rc == 0 && rows < 9000000; rows++) {
        snprintf(name, sizeof name, "job-%d", rows / 2000);
        rc = groups_add(groups, &row, &trouble);
    }
    assert_int_equal(rc, -E2BIG);
    assert_non_null(
        strstr(trouble.text, "too many names (20")); /* of 2000 jobs each, with two figures of 8 bytes: 64 MiB */
}
