/* The plain placement policies: which of the GPUs that qualify is taken. carma's own is in test_placement.c. */
#include "core_fixture.h"

TEST_BETWEEN(test_idle_gpus_first_in_index_order, setup, teardown)
{
    static const char *const names[] = {"exclusive", "round-robin", "magm", "lug", "mug"};

    for (size_t i = 0; i < array_size(names); i++) {
        struct fixture *f = *state;
        configure(f, names[i], MEMORY_MONITOR);
        sample(f, 0, 0, 0, 700);
        decide(f);
        for (uint32_t g = 0; g < GPUS; g++) {
            char expected[8];
            uint64_t job = submit(f, 1, -1);
            decide(f);
            snprintf(expected, sizeof expected, "%u", g);
            assert_string_equal(placed_on(f, job), expected);
        }
        teardown(state);
        setup(state);
    }
}

CORE_TEST(test_exclusive_never_shares)
{
    uint64_t job;

    configure(f, "exclusive", MEMORY_MONITOR);
    occupy(f, (int64_t[]){GIB, GIB, GIB, GIB}, (int32_t[]){0, 0, 0, 0});
    job = submit(f, 1, -1);
    assert_waits(f, job);
    assert_reason(f, job, "needs 1 GPU to itself, 0 are idle");
    exits(f, 3, EXIT_COMPLETED, -1);
    assert_goes_to(f, job, "2");
}

static void choose(struct fixture *f, const char *policy, uint32_t gpus, const char *expected)
{
    uint64_t job;

    configure(f, policy, MEMORY_MONITOR);
    occupy(f, (int64_t[]){20 * GIB, 10 * GIB, 30 * GIB, 5 * GIB}, (int32_t[]){100, 500, 300, 700});
    job = submit(f, gpus, -1);
    decide(f);
    assert_string_equal(placed_on(f, job), expected);
}

CORE_TEST(test_magm_takes_most_free_memory)
{
    choose(f, "magm", 1, "3");
}

CORE_TEST(test_lug_takes_lowest_activity)
{
    choose(f, "lug", 1, "0");
}

CORE_TEST(test_mug_takes_highest_activity)
{
    choose(f, "mug", 1, "3");
}

CORE_TEST(test_several_gpus_come_best_first)
{
    choose(f, "magm", 3, "3,1,0");
}

CORE_TEST(test_mug_leaves_idle_gpus_alone)
{
    uint64_t first, second;

    configure(f, "mug", MEMORY_MONITOR);
    first = submit(f, 1, -1);
    assert_goes_to(f, first, "0");
    memory_observed(f, first, 0, 5 * GIB);
    sample(f, 0, 5 * GIB, 0, 0);
    f->now_ns += SECONDS(31);
    second = submit(f, 1, -1);
    assert_goes_to(f, second, "0");
}

CORE_TEST(test_round_robin_goes_round)
{
    configure(f, "round-robin", MEMORY_MONITOR);
    occupy(f, (int64_t[]){39 * GIB, 39 * GIB, 39 * GIB, 39 * GIB}, (int32_t[]){1000, 1000, 1000, 1000});
    for (uint32_t g = 0; g < 2 * GPUS; g++) { /* at any load */
        uint64_t job = submit(f, 1, -1);
        char expected[8];
        decide(f);
        snprintf(expected, sizeof expected, "%u", g % GPUS);
        assert_string_equal(placed_on(f, job), expected);
        memory_observed(f, job, g % GPUS, GIB);
        f->now_ns += SECONDS(31);
    }
}

static void fit(struct fixture *f, const char *policy, const char *expected)
{
    uint64_t job;

    configure(f, policy, MEMORY_MONITOR);
    occupy(f, (int64_t[]){39 * GIB, 10 * GIB, 30 * GIB, 5 * GIB}, (int32_t[]){0, 0, 0, 0});
    job = submit(f, 1, -1);
    decide(f);
    assert_string_equal(placed_on(f, job), expected);
}

CORE_TEST(test_first_fit)
{
    fit(f, "first-fit", "1");
}

CORE_TEST(test_best_fit)
{
    fit(f, "best-fit", "2");
}

RUN_TESTS(NULL, NULL)
