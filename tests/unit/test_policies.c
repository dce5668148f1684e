/* The plain placement policies: which of the GPUs that qualify is taken. carma's own is in test_placement.c. */
#include "core_fixture.h"

static const char *const idle_gpus_first_in_index_order[] = {"exclusive", "round-robin", "magm", "lug", "mug"};

CORE_EACH_ROW(test_idle_gpus_first_in_index_order, idle_gpus_first_in_index_order)
{
    configure(f, *row, MEMORY_MONITOR);
    sample(f, 0, 0, 0, 700);
    decide(f);
    for (uint32_t g = 0; g < GPUS; g++) {
        uint64_t job = submit(f, 1, -1);
        assert_goes_to(f, job, ((char[]){(char)('0' + g), '\0'}));
    }
}

CORE_TEST(test_exclusive_never_shares)
{
    configure(f, "exclusive", MEMORY_MONITOR);
    occupy(f, (int64_t[]){GIB, GIB, GIB, GIB}, (int32_t[]){0, 0, 0, 0});
    uint64_t job = submit(f, 1, -1);
    assert_waits(f, job);
    assert_reason(f, job, "1 idle GPU needed, 0 are idle");
    exits(f, 3, EXIT_COMPLETED, -1);
    assert_goes_to(f, job, "2");
}

static const struct {
    const char *policy;
    uint32_t gpus;
    int64_t used_gib[GPUS];
    int32_t smact[GPUS];
    const char *expected;
} the_choice_among_busy_gpus[] = {
    {"magm", 1, {20, 10, 30, 5}, {100, 500, 300, 700}, "3"},     /* most free memory */
    {"lug", 1, {20, 10, 30, 5}, {100, 500, 300, 700}, "0"},      /* lowest activity */
    {"mug", 1, {20, 10, 30, 5}, {100, 500, 300, 700}, "3"},      /* highest activity */
    {"magm", 3, {20, 10, 30, 5}, {100, 500, 300, 700}, "3,1,0"}, /* the best first */
    {"first-fit", 1, {39, 10, 30, 5}, {0}, "1"},
    {"best-fit", 1, {39, 10, 30, 5}, {0}, "2"},
};

CORE_EACH_ROW(test_the_choice_among_busy_gpus, the_choice_among_busy_gpus)
{
    int64_t used[GPUS];
    for (uint32_t g = 0; g < GPUS; g++)
        used[g] = row->used_gib[g] * GIB;
    configure(f, row->policy, MEMORY_MONITOR);
    occupy(f, used, row->smact);
    uint64_t job = submit(f, row->gpus, -1);
    assert_goes_to(f, job, row->expected);
}

CORE_TEST(test_mug_leaves_idle_gpus_alone)
{
    configure(f, "mug", MEMORY_MONITOR);
    uint64_t first = submit(f, 1, -1);
    assert_goes_to(f, first, "0");
    memory_observed(f, first, 0, 5 * GIB);
    sample(f, 0, 5 * GIB, 0, 0);
    f->now_ns += SECONDS(31);
    uint64_t second = submit(f, 1, -1);
    assert_goes_to(f, second, "0");
}

CORE_TEST(test_round_robin_goes_round)
{
    configure(f, "round-robin", MEMORY_MONITOR);
    occupy(f, (int64_t[]){39 * GIB, 39 * GIB, 39 * GIB, 39 * GIB}, (int32_t[]){1000, 1000, 1000, 1000});
    for (uint32_t g = 0; g < 2 * GPUS; g++) { /* at any load */
        uint64_t job = submit(f, 1, -1);
        assert_goes_to(f, job, ((char[]){(char)('0' + g % GPUS), '\0'}));
        memory_observed(f, job, g % GPUS, GIB);
        f->now_ns += SECONDS(31);
    }
}
