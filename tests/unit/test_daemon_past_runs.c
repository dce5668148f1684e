/* Run times by workload, and estimates of SM activity corrected by observed runs. */
#include "unit.h"

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
    json_t *json = past_runs_times(runs, 0, workload);
    char text[200];

    snprintf(text, sizeof text, "%lld %lld %lld %lld", (long long)json_integer_value(json_object_get(json, "runs")),
             (long long)json_integer_value(json_object_get(json, "low_ns")) / NS_PER_SEC,
             (long long)json_integer_value(json_object_get(json, "median_ns")) / NS_PER_SEC,
             (long long)json_integer_value(json_object_get(json, "high_ns")) / NS_PER_SEC);
    assert_string_equal(text, expected);
    json_decref(json);
}

static int32_t corrected_for(const struct past_runs *runs, uint32_t uid, const char *model, int32_t estimated)
{
    struct job_estimate estimate = {
        .smact_permille = estimated, .uncorrected_permille = estimated, .model = model ? xstrdup(model) : NULL};

    past_runs_correct(runs, uid, &estimate);
    estimated = estimate.smact_permille;
    job_estimate_release(&estimate);
    return estimated;
}

static int32_t corrected(const struct past_runs *runs, const char *model, int32_t estimated)
{
    return corrected_for(runs, 0, model, estimated);
}

/* So many runs of the user, which others are told of. */
static void users_runs(struct past_runs *runs, uint32_t uid, int count, int64_t seconds, int64_t observed)
{
    struct store_history row = run_of("w", seconds);

    row.uid = uid;
    row.model = "cnn 100";
    row.estimated_permille = 700;
    row.activity_permille = observed;
    for (int i = 0; i < count; i++)
        past_runs_end(runs, &row);
}

TEST(test_run_times_of_a_workload)
{
    struct past_runs *runs = past_runs_new();
    struct store_history failed = run_of("a", 900), never = run_of("a", 900);

    assert_true(json_is_null(past_runs_times(runs, 0, "a")));
    end_run(runs, "a", 12);
    assert_times(runs, "a", "1 12 12 12");
    for (int seconds = 1; seconds <= 9; seconds++)
        end_run(runs, "a", 20 + seconds);
    failed.state = "FAILED";
    past_runs_end(runs, &failed);
    never.started_ns = -1;
    past_runs_end(runs, &never);
    assert_times(runs, "a", "10 12 24 28");
    assert_true(json_is_null(past_runs_times(runs, 0, "b")));
    for (int run = 0; run < PAST_RUNS_KEPT; run++) /* the first ones are forgotten */
        end_run(runs, "a", 100);
    assert_times(runs, "a", "64 100 100 100");
    end_run(runs, "", 1); /* nobody knows of what */
    assert_true(json_is_null(past_runs_times(runs, 0, "")));
    past_runs_free(runs);
}

TEST(test_old_workloads_are_forgotten)
{
    struct past_runs *runs = past_runs_new();
    char workload[32];

    users_runs(runs, 7, 1, 60, 500);
    for (int i = 0; i <= PAST_RUNS_MOST; i++) {
        snprintf(workload, sizeof workload, "w%d", i);
        end_run(runs, workload, 1);
        if (i == 5)
            end_run(runs, "w0", 1);
    }
    assert_times(runs, "w0", "2 1 1 1"); /* it ran again later */
    assert_true(json_is_null(past_runs_times(runs, 0, "w1")));
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 567); /* who has many loses his own */
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

/* Two who agree raise it, five lower it, at most by a quarter; runs that are short or idle tell others nothing. */
TEST(test_users_tell_one_another)
{
    struct past_runs *runs = past_runs_new();

    users_runs(runs, 1, 1000, 59, 990);
    users_runs(runs, 8, 1000, 59, 990);
    users_runs(runs, 2, 1000, 90, PAST_RUNS_IDLE);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 700);
    users_runs(runs, 1, 1000, 60, 990);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 700); /* one is not believed */
    users_runs(runs, 2, 1, 60, 940);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 860);
    users_runs(runs, 2, 1000, 60, 990);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 875);
    for (uint32_t uid = 3; uid < 5; uid++)
        users_runs(runs, uid, 1000, 60, 20);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 700); /* two say more, two less */
    for (uint32_t uid = 1; uid < 3; uid++)
        past_runs_forget(runs, true, uid, "");
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 700); /* too few to lower it */
    for (uint32_t uid = 5; uid < 7; uid++)
        users_runs(runs, uid, 1000, 60, 20);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 560);
    users_runs(runs, 7, 1, 60, 400);
    assert_int_equal(corrected_for(runs, 7, "cnn 100", 700), 400); /* the own runs say 500 */
    past_runs_forget(runs, false, 0, "w");
    assert_true(json_is_null(past_runs_times(runs, 7, "w")));
    past_runs_free(runs);
}

/* Random tables: with a liar, or a fifth of five users or more that lie, and without them. */
TEST(test_liars_move_nobody_far)
{
    uint64_t random = 1;

    for (int trial = 0; trial < 3000; trial++) {
        struct past_runs *all = past_runs_new(), *honest = past_runs_new();
        uint32_t users = 2 + trial % 14, liars = users < 10 ? 1 : users / 5;
        int64_t usual = 10 + trial * 7 % 980;

        for (uint32_t uid = 0; uid < users; uid++) {
            bool lies = uid >= users - liars;
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            int64_t observed = random >> 62 ? usual : (int64_t)(random >> 33) % 980 + 10;
            if (lies)
                observed = trial % 2 ? 990 : 11;
            users_runs(all, uid, lies ? 50 : (int)(random >> 40) % 4, 60, observed);
            if (!lies)
                users_runs(honest, uid, (int)(random >> 40) % 4, 60, observed);
        }
        int32_t one = corrected_for(all, 0, "cnn 100", 700);
        int32_t other = corrected_for(honest, 0, "cnn 100", 700);
        if (one > other + other / 4 + 1 || other > one + one / 4 + 1)
            fail_msg("trial %d, %u users: %d with liars, %d without", trial, users, one, other);
        past_runs_free(all);
        past_runs_free(honest);
    }
}
