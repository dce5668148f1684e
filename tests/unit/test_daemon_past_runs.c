/* Run times by workload, and estimates of SM activity corrected by observed runs. */
#include "unit.h"

#include "base/units.h"
#include "daemon/account/past_runs.h"
#include "estimate/shrinkage.h"

static struct store_history run_of(const char *workload, int64_t seconds)
{
    return (struct store_history){.state = "COMPLETED",
                                  .started_ns = 5 * NS_PER_SEC,
                                  .ended_ns = (5 + seconds) * NS_PER_SEC,
                                  .workload = workload,
                                  .model = "",
                                  .estimated_permille = -1};
}

static void end_run(struct past_runs *runs, const char *workload, int64_t seconds)
{
    struct store_history row = run_of(workload, seconds);

    past_runs_end(runs, &row);
}

static void end_model(struct past_runs *runs, const char *model, int64_t estimated, int64_t observed)
{
    struct store_history row = run_of("", 1);

    row.model = model;
    row.estimated_permille = estimated;
    row.activity_permille = observed;
    past_runs_end(runs, &row);
}

static void assert_times(const struct past_runs *runs, const char *workload, const char *expected)
{
    json_t *json = past_runs_times(runs, workload);
    char text[200];

    snprintf(text, sizeof text, "%lld %lld %lld %lld", (long long)json_integer_value(json_object_get(json, "runs")),
             (long long)json_integer_value(json_object_get(json, "low_ns")) / NS_PER_SEC,
             (long long)json_integer_value(json_object_get(json, "median_ns")) / NS_PER_SEC,
             (long long)json_integer_value(json_object_get(json, "high_ns")) / NS_PER_SEC);
    assert_string_equal(text, expected);
    json_decref(json);
}

static int32_t corrected(const struct past_runs *runs, const char *model, int32_t estimated)
{
    struct job_estimate estimate = {
        .smact_permille = estimated, .uncorrected_permille = estimated, .model = model ? xstrdup(model) : NULL};

    past_runs_correct(runs, &estimate);
    estimated = estimate.smact_permille;
    job_estimate_release(&estimate);
    return estimated;
}

TEST(test_run_times_of_a_workload)
{
    struct past_runs *runs = past_runs_new();
    struct store_history failed = run_of("a", 900), never = run_of("a", 900);

    assert_true(json_is_null(past_runs_times(runs, "a")));
    end_run(runs, "a", 12);
    assert_times(runs, "a", "1 12 12 12");
    for (int seconds = 1; seconds <= 9; seconds++)
        end_run(runs, "a", 20 + seconds);
    failed.state = "FAILED";
    past_runs_end(runs, &failed);
    never.started_ns = -1;
    past_runs_end(runs, &never);
    assert_times(runs, "a", "10 12 24 28");
    assert_true(json_is_null(past_runs_times(runs, "b")));
    for (int run = 0; run < PAST_RUNS_KEPT; run++) /* the first ones are forgotten */
        end_run(runs, "a", 100);
    assert_times(runs, "a", "64 100 100 100");
    end_run(runs, "", 1); /* nobody knows of what */
    assert_true(json_is_null(past_runs_times(runs, "")));
    past_runs_free(runs);
}

TEST(test_old_workloads_are_forgotten)
{
    struct past_runs *runs = past_runs_new();
    char workload[32];

    for (int i = 0; i <= PAST_RUNS_MOST; i++) {
        snprintf(workload, sizeof workload, "w%d", i);
        end_run(runs, workload, 1);
        if (i == 5)
            end_run(runs, "w0", 1);
    }
    assert_times(runs, "w0", "2 1 1 1"); /* it ran again later */
    assert_true(json_is_null(past_runs_times(runs, "w1")));
    past_runs_free(runs);
}

/* The mean error of n runs counts n / (n + 0.5) for the same model, that of n models n / (n + 1) for another one. */
TEST(test_activity_moves_towards_what_was_observed)
{
    struct past_runs *runs = past_runs_new();

    assert_int_equal(corrected(runs, "cnn 100", 700), 700);
    end_model(runs, "cnn 100", 700, 400);
    assert_int_equal(corrected(runs, "cnn 100", 700), 500);
    end_model(runs, "cnn 100", 650, 350);
    assert_int_equal(corrected(runs, "cnn 100", 700), 460);
    assert_int_equal(corrected(runs, "cnn 200", 700), 550);
    assert_int_equal(corrected(runs, "cnn 1000", 700), 550); /* not the one whose name it begins with */
    assert_int_equal(corrected(runs, "mlp 100", 700), 700);
    assert_int_equal(corrected(runs, NULL, 700), 700);
    end_model(runs, "cnn 200", 500, 500);
    end_model(runs, "cnn 200", 500, 0);                     /* never observed */
    assert_int_equal(corrected(runs, "cnn 200", 700), 650); /* its own runs take back what the family said */
    assert_int_equal(corrected(runs, "cnn 300", 700), 600);
    assert_int_equal(corrected(runs, "cnn 300", 50), 10);
    past_runs_free(runs);
}

/* Nothing is estimated of transformers: those that ran say it. */
TEST(test_a_family_without_an_estimate)
{
    struct past_runs *runs = past_runs_new();

    assert_int_equal(corrected(runs, "transformer 100", -1), -1);
    end_model(runs, "transformer 200", -1, SHRINKAGE_PRIOR_PERMILLE + 300);
    assert_int_equal(corrected(runs, "transformer 100", -1), SHRINKAGE_PRIOR_PERMILLE + 150);
    assert_int_equal(corrected(runs, "transformer 200", -1), SHRINKAGE_PRIOR_PERMILLE + 200);
    past_runs_free(runs);
}

RUN_TESTS(NULL, NULL)
