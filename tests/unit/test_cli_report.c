/* The metrics of a play: percentiles, the GPUs' use, the report. */
#include "unit.h"

#include "base/stats/stats.h"
#include "cli/play/report.h"
#include "cli/play/usage.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"

#define SECOND INT64_C(1000000000)

TEST(percentiles_interpolate)
{
    double values[] = {40, 10, 30, 20};

    assert_near(stats_percentile(values, 4, 0), 10, 1e-9);
    assert_near(stats_percentile(values, 4, 50), 25, 1e-9);
    assert_near(stats_percentile(values, 4, 95), 38.5, 1e-9);
    assert_near(stats_percentile(values, 4, 100), 40, 1e-9);
    assert_near(stats_percentile(values, 1, 95), 10, 1e-9);
    assert_near(stats_percentile(values, 0, 95), 0, 1e-9);
    assert_near(stats_mean(values, 4), 25, 1e-9);
    assert_near(stats_mean(values, 0), 0, 1e-9);
}

static json_t *gpus(double seconds, double energy_mj, double byte_seconds, double activity_seconds)
{
    return json_pack("{s:[{s:s,s:f,s:f,s:f,s:f}]}", "gpus", "uuid", "GPU-a", "observed_ns", seconds * 1e9, "energy_mj",
                     energy_mj, "memory_byte_seconds", byte_seconds, "sm_activity_seconds", activity_seconds);
}

static void add(struct usage *usage, json_t *answer)
{
    usage_add(usage, answer);
    json_decref(answer);
}

static void shows(const struct usage *usage, double joules, double memory_bytes, double sm_activity)
{
    assert_near(usage_energy_joules(usage), joules, 1e-9);
    assert_near(usage_memory_mean_bytes(usage), memory_bytes, 1e-9);
    assert_near(usage_sm_activity_mean(usage), sm_activity, 1e-9);
}

TEST(usage_is_a_difference)
{
    CLEANUP(usage_release) struct usage usage;
    CLEANUP(json_release) json_t *nothing = json_pack("{s:[{s:s}]}", "gpus", "uuid", "GPU-a");

    usage_init(&usage);
    usage_add(&usage, nothing);
    usage_add(&usage, nothing);
    shows(&usage, -1, -1, -1); /* unknown is not zero */
    usage_release(&usage);
    usage_init(&usage);
    add(&usage, gpus(100, 5000, 1000, 10));
    add(&usage, gpus(110, 6000, 2000, 12));
    add(&usage, gpus(120, 9000, 3000, 18));
    shows(&usage, 4, 100, 0.4);
    usage_release(&usage);
    usage_init(&usage); /* the daemon's integrals begin at 0 after a restart, the GPU's energy counter goes on */
    add(&usage, gpus(100, 5000, 1000, 10));
    add(&usage, gpus(110, 6000, 2000, 12));
    add(&usage, gpus(150, 9000, 0, 0));
    add(&usage, gpus(160, 9500, 500, 4));
    shows(&usage, 4.5, 75, 0.3);
}

static json_t *job(int uid, const char *state, int64_t submitted, int64_t first, int64_t launched, int64_t ended,
                   int crashes)
{
    return json_pack("{s:i,s:s,s:I,s:I,s:I,s:I,s:i}", "uid", uid, "state", state, "submitted_ns", submitted * SECOND,
                     "first_started_ns", first * SECOND, "started_ns", launched * SECOND, "ended_ns", ended * SECOND,
                     "crashes", crashes);
}

static void expect(const json_t *report, const char *member, double value)
{
    assert_near(answer_number(report, member, -12345), value, 1e-9);
}

TEST(reports_follow_the_thesis)
{
    CLEANUP(usage_release) struct usage usage;
    const struct report_job jobs[] = {
        /* waits 10, executes 100, completes in 110 */
        {job(1000, "COMPLETED", 1000, 1010, 1010, 1110, 0), 50},
        /* launched three times: waits 30, executes 200, completes in 380 */
        {job(1001, "COMPLETED", 1020, 1050, 1200, 1400, 2), 190},
        /* never started: counts as failed, and in no time */
        {job(1002, "REFUSED", 1030, 0, 0, 1030, 0), 100},
    };

    usage_init(&usage);
    add(&usage, gpus(0, 0, 0, 0));
    add(&usage, gpus(10, 2000, 80, 5));
    CLEANUP(json_release) json_t *report = report_compute(jobs, 3, &usage);
    expect(report, "jobs", 3);
    expect(report, "failed", 1);
    expect(report, "makespan_s", 400);
    expect(report, "wait_mean_s", 20);
    expect(report, "wait_p95_s", 29);
    expect(report, "run_time_mean_s", 150);
    expect(report, "run_time_p95_s", 195);
    expect(report, "jct_mean_s", 245);
    expect(report, "jct_p95_s", 366.5);
    expect(report, "oom", 2);
    expect(report, "energy_j", 2);
    expect(report, "memory_mean_bytes", 8);
    expect(report, "sm_activity_mean", 0.5);
    expect(report, "sharing_slowdown_max", 2); /* 100 / 50, and 200 / 190 */
    expect(report, "sharing_slowdown_mean", (2 + 200.0 / 190) / 2);
    expect(report, "bounded_slowdown_max", 2.2); /* 110 / 50, and 380 / 190 */
    expect(report, "bounded_slowdown_p95", 2.19);
    expect(report, "users", 2);
    expect(report, "jain_index", 4.2 * 4.2 / (2 * (2.2 * 2.2 + 4)));
    assert_true(report_is_incomplete(report));
    assert_true(json_is_true(json_object_get(report, "incomplete")));
    for (size_t i = 0; i < array_size(jobs); i++)
        json_decref((json_t *)jobs[i].job);
}
