/* The core's knowledge of workloads: their memory, with a margin, and their activity. */
#include "placement_fixture.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/share/slowdown.h"
#include "core/users.h"

static void run_once(struct fixture *f, const char *workload, int64_t reservation, int64_t peak)
{
    uint64_t job = submit_workload(f, workload, 1, reservation, -1);

    decide(f);
    memory_observed(f, job, 0, peak);
    exits(f, job, EXIT_COMPLETED, -1);
}

/* 10 GiB with that standard deviation: the sum of twelve uniform numbers is as good as normal here. */
static int64_t normal_bytes(uint64_t *random, int64_t spread)
{
    int64_t sum = 0;

    for (int i = 0; i < 12; i++) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (int64_t)(*random >> 44);
    }
    return 10 * GIB + 10 * GIB / 10000 * spread * (sum - (INT64_C(6) << 20)) / (INT64_C(1) << 20);
}

CARMA_TEST(test_memory_is_learned_with_a_margin)
{
    run_once(f, "w", 30 * GIB, 16 * GIB);
    submit_workload(f, "w", 1, 30 * GIB, -1);
    submit_workload(f, "other", 1, 30 * GIB, -1);
    decide(f);
    int64_t reserved_bytes = f->decisions.items[0].placed.reserved_bytes; /* and a sixteenth */
    assert_true(reserved_bytes > 169 * GIB / 10 && reserved_bytes < 171 * GIB / 10);
    assert_int_equal(f->decisions.items[1].placed.reserved_bytes, 30 * GIB);
    exits(f, 2, EXIT_COMPLETED, -1);
    exits(f, 3, EXIT_COMPLETED, -1);
    for (int i = 0; i < 2; i++)
        run_once(f, "w", 30 * GIB, 8 * GIB);
    /* Runs that differ by factors: the next may need more than the most of all. */
    reserved_bytes = starts_with(f, submit_workload(f, "w", 1, -1, -1));
    assert_true(reserved_bytes > 17 * GIB && reserved_bytes < 19 * GIB);
}

/* Runs that are all alike need less and less room above them; never less than the most that was seen. */
CARMA_TEST(test_the_margin_falls_with_the_runs)
{
    int64_t before_bytes = INT64_MAX;

    for (int runs = 1; runs <= 30; runs++) {
        run_once(f, "w", 30 * GIB, 16 * GIB);
        uint64_t job = submit_workload(f, "w", 1, 30 * GIB, -1);
        int64_t reserved_bytes = starts_with(f, job);
        assert_true(reserved_bytes >= 16 * GIB && reserved_bytes <= before_bytes);
        before_bytes = reserved_bytes;
        exits(f, job, EXIT_FAILED, -1);
    }
    assert_true(before_bytes < 16 * GIB + 16 * GIB / 50);
    run_once(f, "w", 30 * GIB, 24 * GIB);
    /* one of 31, but it was seen */
    assert_int_equal(starts_with(f, submit_workload(f, "w", 1, 30 * GIB, -1)), 24 * GIB);
}

/* Normal runs of the assumed spread: the estimate is enough for 98%; of thrice that, for 88% of one to eight runs. */
CORE_TEST(test_the_learned_quantile_holds)
{
    static const struct {
        int64_t spread; /* in parts of 10,000 */
        size_t least;   /* of 10,000 next runs */
    } cases[] = {{160, 9780}, {500, 8800}};
    const struct record_submitted guessed = {.gpus = 1, .request_bytes = 1, .request_source = SOURCE_ESTIMATED};

    for (size_t i = 0; i < array_size(cases); i++) {
        uint64_t random = 1;
        size_t enough = 0;
        for (size_t trial = 0; trial < 10000; trial++) {
            CLEANUP(drop_core) struct core *core = core_new();
            struct profile *profile = learn_profile(core, user_of(core, 0), "w");
            struct job job = {.profile = profile, .wants = &guessed, .run = &job_never_ran};
            core->config.learn = true;
            core->largest_gpu_bytes = 40 * GIB;
            for (size_t run = 0; run < 1 + trial % 8; run++)
                learn_memory(core, &job, normal_bytes(&random, cases[i].spread), LEARN_RUN);
            enough += normal_bytes(&random, cases[i].spread) <= need_memory(core, &job, NULL);
        }
        if (enough < cases[i].least || (cases[i].least > 9700 && enough > 9950))
            fail_msg("spread %d: enough for %zu of 10000", (int)cases[i].spread, enough);
    }
}

CARMA_TEST(test_what_is_declared_is_believed)
{
    run_once(f, "w", 30 * GIB, 16 * GIB);
    assert_int_equal(starts_with(f, submit_of(f, "w", 20 * GIB)), 20 * GIB);
    change(f, learn, false);
    assert_int_equal(starts_with(f, submit_workload(f, "w", 1, 30 * GIB, -1)), 30 * GIB);
}

/* A workload that a crash has shown to need more than any GPU has waits for none: its jobs run, and are given up. */
CARMA_TEST(test_what_fits_nowhere_does_not_wait_for_ever)
{
    uint64_t job = submit_workload(f, "w", 1, -1, -1);

    decide(f);
    memory_observed(f, job, 0, 39 * GIB);
    exits(f, job, EXIT_GPU_OOM, 8 * GIB);
    starts_with(f, submit_workload(f, "w", 1, -1, -1));
}

static void settle_and_sample(struct fixture *f, int32_t activity, int times)
{
    for (int i = 0; i < times; i++) {
        f->now_ns += SECONDS(700);
        sample(f, 0, GIB, 0, activity);
    }
}

CARMA_TEST(test_activity_is_learned_alone)
{
    submit_workload(f, "w", 1, GIB, -1);
    decide(f);
    assert_int_equal(learned_activity(core_find_job(f->core, 1)), LEARN_PRIOR_PERMILLE);
    f->now_ns += SECONDS(149); /* window 90 s, loading 60 s */
    sample(f, 0, GIB, 0, 200);
    assert_int_equal(learned_activity(core_find_job(f->core, 1)), LEARN_PRIOR_PERMILLE);
    settle_and_sample(f, 200, 8);
    assert_in_range(learned_activity(core_find_job(f->core, 1)), 198, 210);
}

CORE_TEST(test_activity_is_learned_by_regression)
{
    use_carma_on(f, 1);
    submit_workload(f, "known", 1, GIB, -1);
    decide(f);
    settle_and_sample(f, 300, 8);
    submit_workload(f, "new", 1, GIB, -1);
    decide(f);
    settle_and_sample(f, 370, 8); /* 1 - 0.7 x 0.9 */
    assert_in_range(learned_activity(core_find_job(f->core, 1)), 270, 330);
    assert_in_range(learned_activity(core_find_job(f->core, 2)), 70, 140);
}

CORE_TEST(test_what_is_learned_on_one_gpu_opens_another)
{
    struct core_config config = carma_config();

    config.max_slowdown_permille = 1400;
    config.starvation_timeout_ns = SECONDS(36000); /* else GPUs are reserved for the job that waits */
    reconfigure(f, &config);
    keep_gpus(f, 2);
    submit_workload(f, "w", 1, 39 * GIB, -1);
    submit_workload(f, "w", 1, GIB, -1);
    submit_workload(f, "", 1, GIB, 400);
    assert_goes_to(f, 2, "1"); /* beside it, the job of 0.6 would have 0.456 of the SMs: 1.32 of 1.29 */
    assert_string_equal(placed_on(f, 3), "");
    settle_and_sample(f, 200, 8); /* of GPU 0 */
    assert_goes_to(f, 3, "1");    /* 0.2 leaves 0.32 to 0.4: 1.25 */
}

/* Predictions for a GPU are kept until something changes. That of one whose three jobs have taught something is new. */
CORE_TEST(test_a_prediction_follows_what_is_learned)
{
    use_carma_on(f, 1);
    for (uint64_t job = 0; job < 3; job++)
        submit_workload(f, (char[]){'a' + (char)job, '\0'}, 1, GIB, -1);
    for (int i = 0; i < 8; i++) {
        decide(f);
        settle_and_sample(f, 300, 1);
    }
    assert_int_equal(f->core->gpus[0]->resident_count, 3);
    struct slowdown before = slowdown_predict(f->core, f->core->gpus[0], NULL);
    settle_and_sample(f, 900, 1);
    struct slowdown after = slowdown_predict(f->core, f->core->gpus[0], NULL);
    assert_true(after.worst_permille > before.worst_permille);
}

CARMA_TEST(test_an_activity_opens_every_gpu_of_its_workload)
{
    uint64_t opened[GPUS];

    for (int i = 0; i < 2; i++)
        submit_workload(f, "w", 1, 30 * GIB, -1);
    decide(f);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(core_gpu(f->core, i)->resident_count, 1);
        opened[i] = core_gpu(f->core, i)->opened;
    }
    settle_and_sample(f, 200, 1);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(core_gpu(f->core, i)->opened > opened[i]);
}

CARMA_TEST(test_a_sample_is_due_when_it_can_teach)
{
    struct record due = {.type = RECORD_SAMPLE};

    submit_workload(f, "w", 1, GIB, -1);
    decide(f);
    due.sample = (struct record_sample){0, GIB, 0, 200, -1, -1, true};
    due.at_ns = f->now_ns + core_learning_delay_ns(f->core) - 1;
    due.sample.others = false;
    assert_false(core_sample_is_due(f->core, &due)); /* nothing waits, nothing to learn yet */
    due.at_ns++;
    assert_true(core_sample_is_due(f->core, &due));
    due.sample.others = true;
    assert_true(core_sample_is_due(f->core, &due)); /* for the speeds of jobs */
    f->now_ns = due.at_ns;
    apply(f, due);
    assert_int_equal(learned_activity(core_find_job(f->core, 1)), LEARN_PRIOR_PERMILLE);
    assert_false(core_sample_is_due(f->core, &due)); /* another's process: it teaches nothing */
}
