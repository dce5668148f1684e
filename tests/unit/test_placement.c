/* Where a job is placed: carma's own policy by predicted slowdown, and its variants by configuration. */
#include "core/share/slowdown.h"
#include "placement_fixture.h"

CORE_TEST(test_slowdown_is_sum_over_union)
{
    use_carma_on(f, 1);
    submit_workload(f, "", 1, GIB, 600);
    submit_workload(f, "", 1, GIB, 600);
    decide(f); /* U = 1 - 0.4^2 = 0.84; (0.6 + 0.6) / 0.84 = 1.428 */
    assert_int_equal(f->decisions.count, 2);
    assert_int_equal(f->decisions.items[0].placed.slowdown_permille, 1000);
    assert_int_equal(f->decisions.items[1].placed.slowdown_permille, 1428);
    assert_int_equal(slowdown_predict(f->core, core_gpu(f->core, 0), NULL).delivered_ppm, 840000);
}

CORE_TEST(test_bound_is_that_of_whoever_accepts_least)
{
    struct record careful = wants(1, GIB);

    use_carma_on(f, 1);
    careful.submitted.smact_permille = 600;
    careful.submitted.max_slowdown_permille = 1588; /* 1.428 may be predicted */
    submit_record(f, careful);
    submit_workload(f, "", 1, GIB, 600);
    submit_workload(f, "", 1, GIB, 10);
    assert_goes_to(f, 2, "0"); /* exactly at the bound is within it; a third is too much for the first */
    assert_string_equal(placed_on(f, 3), "");
    assert_reason(f, 3, "sharing GPU 0 would make a job 1.44x slower; the limit is 1.42x");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, 3, "0");
}

CARMA_TEST(test_goes_where_least_is_delivered)
{
    for (uint32_t g = 0; g < GPUS; g++)
        submit_workload(f, "", 1, GIB, (int32_t[]){500, 300, 200, 700}[g]);
    decide(f);
    submit_workload(f, "", 1, GIB, 100);
    assert_goes_to(f, 5, "2");
}

CARMA_TEST(test_of_equals_the_one_with_most_memory)
{
    for (uint32_t g = 0; g < GPUS; g++)
        submit_workload(f, "", 1, g == 2 ? GIB : 4 * GIB, 300);
    decide(f);
    submit_workload(f, "", 1, GIB, 100);
    assert_goes_to(f, 5, "2");
}

/* Each cap alone, or together: then a GPU is closed only where it is busy and full in another way. */
static const struct {
    const char *what;
    bool together;
    int32_t smact, smocc, dram;
    bool placed;
} caps[] = {
    {"each alone: occupancy", false, 500, 451, 0, false},
    {"each alone: memory", false, 500, 0, 401, false},
    {"each alone: all at the cap", false, 800, 450, 400, true},
    {"together: busy but light", true, 900, 450, 400, true},
    {"together: busy and occupied", true, 900, 451, 0, false},
    {"together: busy and memory bound", true, 900, 0, 401, false},
    {"together: idle but occupied", true, 500, 900, 900, true},
    {"together: nothing else measured", true, 900, -1, -1, false},
};

CORE_EACH_ROW(test_caps, caps)
{
    change(f, smact_cap_permille, 800);
    change(f, smocc_cap_permille, 450);
    change(f, dram_cap_permille, 400);
    change(f, caps_together, row->together);
    keep_gpus(f, 1);
    submit(f, 1, GIB);
    decide(f);
    apply(f, (struct record){.type = RECORD_SAMPLE, .sample = {0, GIB, 0, row->smact, row->smocc, row->dram}});
    uint64_t second = submit(f, 1, GIB);
    decide(f);
    if (strcmp(placed_on(f, second), row->placed ? "0" : "") != 0)
        fail_msg("%s", row->what);
}

CORE_TEST(test_paced_loop_takes_its_time)
{
    change(f, memory_view, MEMORY_MONITOR);
    change(f, decide_period_ns, SECONDS(30));
    change(f, collocate_extra_ns, SECONDS(30));
    change(f, paced, true);
    change(f, settle_ns, 0);
    keep_gpus(f, 1);
    submit(f, 1, -1);
    assert_nothing_decided(f); /* thesis: the first look at a queue that was empty comes a period later */
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + SECONDS(30));
    f->now_ns += SECONDS(30);
    assert_goes_to(f, 1, "0");
    sample(f, 0, 39 * GIB, 0, 0);
    submit(f, 1, -1);
    f->now_ns += SECONDS(30);
    decide(f);
    assert_int_equal(decision(f, RECORD_WAITED)->waited.until_ns, f->now_ns + SECONDS(60));
    sample(f, 0, GIB, 0, 0);
    assert_nothing_decided(f);
    f->now_ns += SECONDS(60);
    assert_goes_to(f, 2, "0");
    assert_int_equal(f->core->next_decision_ns, f->now_ns + SECONDS(60));
}
