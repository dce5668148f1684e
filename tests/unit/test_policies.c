/* The plain placement policies: which of the GPUs that qualify is taken. carma's own is in test_placement.c. */
#include "core_fixture.h"

static void test_idle_gpus_first_in_index_order(void **state)
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

static void test_exclusive_never_shares(void **state)
{
    struct fixture *f = *state;
    uint64_t job;

    configure(f, "exclusive", MEMORY_MONITOR);
    occupy(f, (int64_t[]){GIB, GIB, GIB, GIB}, (int32_t[]){0, 0, 0, 0});
    job = submit(f, 1, -1);
    decide(f);
    assert_string_equal(placed_on(f, job), "");
    assert_reason(f, job, "needs 1 GPU to itself, 0 are idle");
    exits(f, 3, EXIT_COMPLETED, -1);
    decide(f);
    assert_string_equal(placed_on(f, job), "2");
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

static void test_magm_takes_most_free_memory(void **state)
{
    choose(*state, "magm", 1, "3");
}

static void test_lug_takes_lowest_activity(void **state)
{
    choose(*state, "lug", 1, "0");
}

static void test_mug_takes_highest_activity(void **state)
{
    choose(*state, "mug", 1, "3");
}

static void test_several_gpus_come_best_first(void **state)
{
    choose(*state, "magm", 3, "3,1,0");
}

static void test_mug_leaves_idle_gpus_alone(void **state)
{
    struct fixture *f = *state;
    uint64_t first, second;

    configure(f, "mug", MEMORY_MONITOR);
    first = submit(f, 1, -1);
    decide(f);
    assert_string_equal(placed_on(f, first), "0");
    memory_observed(f, first, 0, 5 * GIB);
    sample(f, 0, 5 * GIB, 0, 0);
    f->now_ns += SECONDS(31);
    second = submit(f, 1, -1);
    decide(f);
    assert_string_equal(placed_on(f, second), "0");
}

static void test_round_robin_goes_round(void **state)
{
    struct fixture *f = *state;

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

static void test_first_fit(void **state)
{
    fit(*state, "first-fit", "1");
}

static void test_best_fit(void **state)
{
    fit(*state, "best-fit", "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_idle_gpus_first_in_index_order),
        CASE(test_exclusive_never_shares),
        CASE(test_magm_takes_most_free_memory),
        CASE(test_lug_takes_lowest_activity),
        CASE(test_mug_takes_highest_activity),
        CASE(test_several_gpus_come_best_first),
        CASE(test_mug_leaves_idle_gpus_alone),
        CASE(test_round_robin_goes_round),
        CASE(test_first_fit),
        CASE(test_best_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
