/* When a waiting job is expected to start, with its spread (src/sim/forecast.h). */
#include "core_fixture.h"
#include "sim/forecast.h"

#define NEVER INT64_MAX

static const int64_t alike[] = {SECONDS(100), SECONDS(100), SECONDS(100), SECONDS(100)},
                     apart[] = {SECONDS(10), SECONDS(1000), SECONDS(2000)};

static int64_t in_seconds(int64_t ns)
{
    return ns == INT64_MAX ? NEVER : ns / NS_PER_SEC;
}

/* A GPU runs job 1, and jobs 2 and 3 wait for it, each alone. */
CORE_TEST(test_expected_start_and_spread)
{
    const struct {
        uint64_t job;
        const int64_t *times_ns;
        size_t count;
        int64_t limit_s, ran_s, low_s, median_s, high_s;
        uint32_t basis;
        uint64_t unknown;
    } rows[] = {
        {2, alike, 4, 0, 0, 72, 100, 155, FORECAST_BY_RUNS, 0},
        {2, alike, 4, 0, 60, 17, 40, 95, FORECAST_BY_RUNS, 0},
        {2, alike, 4, 0, 300, 26, 149, 273, FORECAST_BY_RUNS, 0}, /* longer than any before it */
        {2, apart, 3, 0, 0, 6, 1000, 3294, FORECAST_BY_RUNS, 0},
        {2, apart, 3, 500, 0, 6, 500, 500, FORECAST_BY_RUNS, 0},
        {2, NULL, 0, 500, 100, 400, 400, 400, FORECAST_BY_LIMIT, 0},
        {2, NULL, 0, 0, 100, NEVER, NEVER, NEVER, FORECAST_BY_NOTHING, 1},
        {3, alike, 4, 0, 60, 104, 140, 225, FORECAST_BY_RUNS, 0},
    };
    struct record_list state = {0};
    struct forecast_question question = {.state = &state, .now_ns = f->now_ns, .count = 2};

    keep_gpus(f, 1);
    for (int i = 0; i < 3; i++) {
        struct record record = wants(1, GIB);
        record.submitted.exclusive = true;
        submit_record(f, record);
    }
    decide(f);
    core_snapshot(f->core, f->now_ns, &state);
    for (size_t i = 0; i < array_size(rows); i++) {
        struct forecast_job jobs[] = {{.job = 1, .ran_ns = SECONDS(rows[i].ran_s)}, {.job = 2, .ran_ns = -1}};
        struct forecast forecast;
        for (size_t k = 0; k < array_size(jobs); k++) {
            jobs[k].basis = rows[i].count ? FORECAST_BY_RUNS : FORECAST_BY_LIMIT;
            jobs[k].limit_ns = SECONDS(rows[i].limit_s);
            jobs[k].times_ns = rows[i].times_ns;
            jobs[k].count = rows[i].count;
        }
        question.jobs = jobs;
        question.job = rows[i].job;
        assert_int_equal(forecast_start(&question, &forecast, &trouble), 0);
        assert_int_equal(in_seconds(forecast.low_ns), rows[i].low_s);
        assert_int_equal(in_seconds(forecast.median_ns), rows[i].median_s);
        assert_int_equal(in_seconds(forecast.high_ns), rows[i].high_s);
        assert_int_equal(forecast.basis, rows[i].basis);
        assert_int_equal(forecast.unknown, rows[i].unknown);
    }
    record_list_release(&state);
}

/* Of another user, who goes first: one comes every minute and a half, as it did for a day. They were an array's, which
 * those to come are not. */
CORE_TEST(test_jobs_that_will_come_are_foreseen)
{
    struct record record = wants(1, GIB);
    struct forecast_job jobs[] = {{.job = 1, .times_ns = alike, .count = 4}, {.job = 2, .ran_ns = -1}};
    static struct forecast_arrival arrivals[960];
    struct record_list state = {0};
    struct forecast_question question = {.state = &state, .now_ns = f->now_ns, .job = 2, .jobs = jobs, .count = 2};
    struct forecast forecast;

    keep_gpus(f, 1);
    change(f, order, ORDER_FAIR);
    change(f, backfill, 1);
    record.submitted.exclusive = true;
    record.submitted.array = 1;
    record.submitted.array_most = 2;
    submit_record(f, record);
    submit_record(f, record);
    decide(f);
    core_snapshot(f->core, f->now_ns, &state);
    record.submitted.uid = 7;
    for (size_t i = 0; i < array_size(arrivals); i++)
        arrivals[i] = (struct forecast_arrival){
            .at_ns = SECONDS(90 * i), .wants = record.submitted, .job = {.times_ns = alike, .count = 4, .ran_ns = -1}};
    question.arrivals = arrivals;
    for (question.arrival_count = 0; question.arrival_count <= 960; question.arrival_count += 960) {
        assert_int_equal(forecast_start(&question, &forecast, &trouble), 0);
        assert_in_range(in_seconds(forecast.median_ns), question.arrival_count ? 180 : 100,
                        question.arrival_count ? 300 : 100);
    }
    record_list_release(&state);
}
