/* Where a job is placed: carma's own policy by predicted slowdown, and the variants that configuration makes of the
 * same code. */
#include "core/slowdown.h"
#include "placement_fixture.h"

static void test_slowdown_is_sum_over_union(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "", 1, GIB, 600);
    submit_workload(f, "", 1, GIB, 600);
    decide(f); /* U = 1 - 0.4^2 = 0.84; (0.6 + 0.6) / 0.84 = 1.428 */
    assert_int_equal(f->decisions.count, 2);
    assert_int_equal(f->decisions.items[0].placed.slowdown_permille, 1000);
    assert_int_equal(f->decisions.items[1].placed.slowdown_permille, 1428);
    assert_int_equal(slowdown_predict(f->core, core_gpu(f->core, 0), NULL).delivered_ppm, 840000);
}

static void test_bound_is_that_of_whoever_accepts_least(void **state)
{
    struct fixture *f = *state;
    struct record careful = wants(1, GIB);

    use_carma(f);
    keep_gpus(f, 1);
    careful.submitted.smact_permille = 600;
    careful.submitted.max_slowdown_permille = 1428;
    submit_record(f, careful);
    submit_workload(f, "", 1, GIB, 600);
    submit_workload(f, "", 1, GIB, 10);
    decide(f); /* exactly at the bound is within it; a third is too much for the first */
    assert_string_equal(placed_on(f, 2), "0");
    assert_string_equal(placed_on(f, 3), "");
    assert_reason(f, 3, "sharing would slow a job down 1.43 times at least (GPU 0), at most 1.42 is allowed");
    exits(f, 1, EXIT_COMPLETED, -1);
    decide(f);
    assert_string_equal(placed_on(f, 3), "0");
}

static void test_goes_where_least_is_delivered(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    for (uint32_t g = 0; g < GPUS; g++)
        submit_workload(f, "", 1, GIB, (int32_t[]){500, 300, 200, 700}[g]);
    decide(f);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    assert_string_equal(placed_on(f, 5), "2");
}

static void test_of_equals_the_one_with_most_memory(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    for (uint32_t g = 0; g < GPUS; g++)
        submit_workload(f, "", 1, g == 2 ? GIB : 4 * GIB, 300);
    decide(f);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    assert_string_equal(placed_on(f, 5), "2");
}

static void share_after_sample(struct fixture *f, const struct core_config *config, int32_t smact, int32_t smocc,
                               int32_t dram, bool placed)
{
    struct record record = {.type = RECORD_SAMPLE};

    reconfigure(f, config);
    keep_gpus(f, 1);
    submit(f, 1, GIB);
    decide(f);
    record.sample = (struct record_sample){0, GIB, 0, smact, smocc, dram};
    apply(f, record);
    submit(f, 1, GIB);
    decide(f);
    assert_string_equal(placed_on(f, 2), placed ? "0" : "");
}

static void caps(struct fixture *f, bool together, int32_t smact, int32_t smocc, int32_t dram, bool placed)
{
    struct core_config config = *core_configuration(f->core);

    config.smact_cap_permille = 800;
    config.smocc_cap_permille = 450;
    config.dram_cap_permille = 400;
    config.caps_together = together;
    share_after_sample(f, &config, smact, smocc, dram, placed);
}

#define CAPS_TEST(name, ...)                                                                                           \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        caps(*state, __VA_ARGS__);                                                                                     \
    }

CAPS_TEST(test_each_cap_alone_occupancy, false, 500, 451, 0, false)
CAPS_TEST(test_each_cap_alone_dram, false, 500, 0, 401, false)
CAPS_TEST(test_each_cap_alone_all_at_the_cap, false, 800, 450, 400, true)
CAPS_TEST(test_together_busy_but_light, true, 900, 450, 400, true)
CAPS_TEST(test_together_busy_and_occupied, true, 900, 451, 0, false)
CAPS_TEST(test_together_busy_and_memory_bound, true, 900, 0, 401, false)
CAPS_TEST(test_together_idle_but_occupied, true, 500, 900, 900, true)
CAPS_TEST(test_together_nothing_else_measured, true, 900, -1, -1, false)

static void test_paced_loop_takes_its_time(void **state)
{
    struct fixture *f = *state;
    struct core_config config = *core_configuration(f->core);

    config.memory_view = MEMORY_MONITOR;
    config.decide_period_ns = SECONDS(30);
    config.collocate_extra_ns = SECONDS(30);
    config.paced = true;
    config.settle_ns = 0;
    reconfigure(f, &config);
    keep_gpus(f, 1);
    submit(f, 1, -1);
    decide(f); /* thesis: the first look at a queue that was empty comes a period later */
    assert_int_equal(f->decisions.count, 0);
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + SECONDS(30));
    f->now_ns += SECONDS(30);
    decide(f);
    assert_string_equal(placed_on(f, 1), "0");
    sample(f, 0, 39 * GIB, 0, 0);
    submit(f, 1, -1);
    f->now_ns += SECONDS(30);
    decide(f);
    assert_int_equal(decision(f, RECORD_WAITED)->waited.until_ns, f->now_ns + SECONDS(60));
    sample(f, 0, GIB, 0, 0);
    decide(f);
    assert_int_equal(f->decisions.count, 0);
    f->now_ns += SECONDS(60);
    decide(f);
    assert_string_equal(placed_on(f, 2), "0");
    assert_int_equal(f->core->next_decision_ns, f->now_ns + SECONDS(60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_slowdown_is_sum_over_union),    CASE(test_bound_is_that_of_whoever_accepts_least),
        CASE(test_goes_where_least_is_delivered), CASE(test_of_equals_the_one_with_most_memory),
        CASE(test_each_cap_alone_occupancy),      CASE(test_each_cap_alone_dram),
        CASE(test_each_cap_alone_all_at_the_cap), CASE(test_together_busy_but_light),
        CASE(test_together_busy_and_occupied),    CASE(test_together_busy_and_memory_bound),
        CASE(test_together_idle_but_occupied),    CASE(test_together_nothing_else_measured),
        CASE(test_paced_loop_takes_its_time),
    };

    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
