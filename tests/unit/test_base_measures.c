/* Slowdowns and fairness, with values worked out by hand. */
#include "unit.h"

#include "base/stats/measures.h"

TEST(sharing_slowdown)
{
    assert_near(measures_sharing_slowdown(300, 100), 3, 1e-9);
    assert_near(measures_sharing_slowdown(90, 100), 0.9, 1e-9); /* run times vary: it is as measured */
    assert_near(measures_sharing_slowdown(13, 1), 1.3, 1e-9);   /* both at least 10 s */
    assert_near(measures_sharing_slowdown(4, 1), 1, 1e-9);
    assert_near(measures_sharing_slowdown(4, 20), 0.5, 1e-9);
}

TEST(bounded_slowdown)
{
    assert_near(measures_bounded_slowdown(300, 100), 3, 1e-9);
    assert_near(measures_bounded_slowdown(90, 100), 1, 1e-9);
    assert_near(measures_bounded_slowdown(12004.97, 1), 1200.497, 1e-9); /* 12004.97 without the bound */
    assert_near(measures_bounded_slowdown(4, 1), 1, 1e-9);
}

TEST(jain)
{
    const double equal[] = {3, 3, 3, 3}, one[] = {8}, unequal[] = {1, 3}, starved[] = {1, 0, 0, 0};

    assert_near(measures_jain(equal, 4), 1, 1e-9);
    assert_near(measures_jain(one, 1), 1, 1e-9);
    assert_near(measures_jain(unequal, 2), 0.8, 1e-9); /* 16 / (2 * 10) */
    assert_near(measures_jain(starved, 4), 0.25, 1e-9);
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
    assert_near(measures.sharing.mean, 1.5, 1e-9);
    assert_near(measures.sharing.p95, 1.95, 1e-9);
    assert_near(measures.sharing.max, 2, 1e-9);
    assert_near(measures.bounded.mean, 10.0 / 3, 1e-9);
    assert_near(measures.bounded.p95, 5.7, 1e-9);
    assert_near(measures.bounded.max, 6, 1e-9);
    assert_near(measures.jain, 0.8, 1e-9); /* 8^2 / (2 * 40) */
}

TEST(of_nobody)
{
    struct measures measures;

    measures_of(NULL, 0, &measures);
    assert_int_equal(measures.users, 0);
    assert_true(isnan(measures.sharing.mean) && isnan(measures.sharing.p95) && isnan(measures.sharing.max));
    assert_true(isnan(measures.bounded.max) && isnan(measures.jain));
}
