/* Slowdowns and fairness, with values worked out by hand. */
#include "unit.h"

#include "base/stats/measures.h"

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9))
        fail_msg("%.9g instead of %.9g", value, wanted);
}

TEST(sharing_slowdown)
{
    near(measures_sharing_slowdown(300, 100), 3);
    near(measures_sharing_slowdown(90, 100), 0.9); /* run times vary: it is as measured */
    near(measures_sharing_slowdown(13, 1), 1.3);   /* both at least 10 s */
    near(measures_sharing_slowdown(4, 1), 1);
    near(measures_sharing_slowdown(4, 20), 0.5);
}

TEST(bounded_slowdown)
{
    near(measures_bounded_slowdown(300, 100), 3);
    near(measures_bounded_slowdown(90, 100), 1);
    near(measures_bounded_slowdown(12004.97, 1), 1200.497); /* 12004.97 without the bound */
    near(measures_bounded_slowdown(4, 1), 1);
}

TEST(jain)
{
    const double equal[] = {3, 3, 3, 3}, one[] = {8}, unequal[] = {1, 3}, starved[] = {1, 0, 0, 0};

    near(measures_jain(equal, 4), 1);
    near(measures_jain(one, 1), 1);
    near(measures_jain(unequal, 2), 0.8); /* 16 / (2 * 10) */
    near(measures_jain(starved, 4), 0.25);
    assert_true(isnan(measures_jain(NULL, 0)));
}

/* User 7 has slowdowns of 1 and 3, user 9 one of 6: means of 2 and 6. */
TEST(of_jobs_and_users)
{
    struct measured_job jobs[] = {{.uid = 7, .run_s = 100, .jct_s = 100, .alone_s = 100},
                                  {.uid = 9, .run_s = 200, .jct_s = 600, .alone_s = 100},
                                  {.uid = 7, .run_s = 150, .jct_s = 300, .alone_s = 100}};
    struct measures measures;

    measures_of(jobs, 3, &measures);
    assert_int_equal(measures.users, 2);
    near(measures.sharing.mean, 1.5);
    near(measures.sharing.p95, 1.95);
    near(measures.sharing.max, 2);
    near(measures.bounded.mean, 10.0 / 3);
    near(measures.bounded.p95, 5.7);
    near(measures.bounded.max, 6);
    near(measures.jain, 0.8); /* 8^2 / (2 * 40) */
}

TEST(of_nobody)
{
    struct measures measures;

    measures_of(NULL, 0, &measures);
    assert_int_equal(measures.users, 0);
    assert_true(isnan(measures.sharing.mean) && isnan(measures.sharing.p95) && isnan(measures.sharing.max));
    assert_true(isnan(measures.bounded.max) && isnan(measures.jain));
}
