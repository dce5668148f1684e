/* carma's own placement policy, rule by rule: predicted slowdown, learned reservations and activities, shrinking,
 * backfill with a bounded delay of the head, informed OOM retry; and the other variants that configuration makes of the
 * same code. */
#include "core_fixture.h"

static struct core_config carma_config(void)
{
    struct core_config config;

    core_config_default(&config);
    snprintf(config.policy, sizeof config.policy, "carma");
    config.memory_view = MEMORY_RESERVE;
    config.margin_bytes = GIB;
    config.decide_period_ns = 0;
    config.oom_retry = OOM_RETRY_INFORMED;
    config.backfill = 4;
    config.starvation_timeout_ns = SECONDS(3600);
    config.max_slowdown_permille = 2000;
    config.learn = true;
    config.shrink_after_ns = SECONDS(60);
    return config;
}

static void use_carma(struct fixture *f)
{
    struct core_config config = carma_config();

    reconfigure(f, &config);
}

static void keep_gpus(struct fixture *f, uint32_t count)
{
    for (uint32_t g = count; g < GPUS; g++) {
        struct record lost = {.type = RECORD_GPU_LOST};
        lost.gpu.gpu = g;
        apply(f, lost);
    }
}

static uint64_t submit_workload(struct fixture *f, const char *workload, uint32_t gpus, int64_t reservation,
                                int32_t activity)
{
    struct record record = wants(gpus, reservation);

    if (reservation >= 0)
        record.submitted.request_source = SOURCE_RECORDED;
    record.submitted.smact_permille = activity;
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s", workload);
    return submit_record(f, record);
}

static const struct record *decision(const struct fixture *f, uint32_t type)
{
    for (size_t i = 0; i < f->decisions.count; i++)
        if (f->decisions.items[i].type == type)
            return &f->decisions.items[i];
    return NULL;
}

/* ---- Estimates of activity ---- */

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
    assert_int_equal(predicted_delivered_ppm(core_gpu(f->core, 0)), 840000);
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

/* ---- Learning ---- */

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

static void test_memory_is_learned_with_a_margin(void **state)
{
    struct fixture *f = *state;
    int64_t reserved_bytes;

    use_carma(f);
    run_once(f, "w", 30 * GIB, 16 * GIB);
    submit_workload(f, "w", 1, 30 * GIB, -1);
    submit_workload(f, "other", 1, 30 * GIB, -1);
    decide(f);
    reserved_bytes = f->decisions.items[0].placed.reserved_bytes; /* and a sixteenth */
    assert_true(reserved_bytes > 169 * GIB / 10 && reserved_bytes < 171 * GIB / 10);
    assert_int_equal(f->decisions.items[1].placed.reserved_bytes, 30 * GIB);
    exits(f, 2, EXIT_COMPLETED, -1);
    exits(f, 3, EXIT_COMPLETED, -1);
    for (int i = 0; i < 2; i++)
        run_once(f, "w", 30 * GIB, 8 * GIB);
    submit_workload(f, "w", 1, -1, -1);
    decide(f);
    /* Runs that differ by factors: the next may need more than the most of all. */
    reserved_bytes = f->decisions.items[0].placed.reserved_bytes;
    assert_true(reserved_bytes > 17 * GIB && reserved_bytes < 19 * GIB);
}

/* Runs that are all alike need less and less room above them; never less than the most that was seen. */
static void test_the_margin_falls_with_the_runs(void **state)
{
    struct fixture *f = *state;
    int64_t before_bytes = INT64_MAX;

    use_carma(f);
    for (int runs = 1; runs <= 30; runs++) {
        uint64_t job;
        run_once(f, "w", 30 * GIB, 16 * GIB);
        job = submit_workload(f, "w", 1, 30 * GIB, -1);
        decide(f);
        int64_t reserved_bytes = f->decisions.items[0].placed.reserved_bytes;
        assert_true(reserved_bytes >= 16 * GIB && reserved_bytes <= before_bytes);
        before_bytes = reserved_bytes;
        exits(f, job, EXIT_FAILED, -1);
    }
    assert_true(before_bytes < 16 * GIB + 16 * GIB / 50);
    run_once(f, "w", 30 * GIB, 24 * GIB);
    submit_workload(f, "w", 1, 30 * GIB, -1);
    decide(f);
    assert_int_equal(f->decisions.items[0].placed.reserved_bytes, 24 * GIB); /* one of 31, but it was seen */
}

/* Normal runs of the assumed spread, and of three times as much: the estimate is enough for 98% (and not for nearly
 * all), and, of one to eight runs with the prior against them, for 88%. */
static void test_the_learned_quantile_holds(void **state)
{
    static const struct {
        int64_t spread; /* in parts of 10,000 */
        size_t least;   /* of 10,000 next runs */
    } cases[] = {{160, 9780}, {500, 8800}};
    const struct record_submitted guessed = {.request_bytes = 1, .request_source = SOURCE_ESTIMATED};

    (void)state;
    for (size_t i = 0; i < array_size(cases); i++) {
        uint64_t random = 1;
        size_t enough = 0;
        for (size_t trial = 0; trial < 10000; trial++) {
            struct core *core = core_new();
            struct profile *profile = learn_profile(core, "w");
            struct job job = {.profile = profile, .wants = &guessed};
            core->config.learn = true;
            for (size_t run = 0; run < 1 + trial % 8; run++)
                learn_memory(core, &job, normal_bytes(&random, cases[i].spread), true);
            enough += normal_bytes(&random, cases[i].spread) <= learned_reservation(core, &job, NULL);
            core_free(core);
        }
        if (enough < cases[i].least || (cases[i].least > 9700 && enough > 9950))
            fail_msg("spread %d: enough for %zu of 10000", (int)cases[i].spread, enough);
    }
}

static void test_what_is_declared_is_believed(void **state)
{
    struct fixture *f = *state;
    struct record record = wants(1, 20 * GIB);

    use_carma(f);
    run_once(f, "w", 30 * GIB, 16 * GIB);
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "w");
    submit_record(f, record);
    decide(f);
    assert_int_equal(f->decisions.items[0].placed.reserved_bytes, 20 * GIB);
}

static void test_nothing_is_learned_where_that_is_off(void **state)
{
    struct fixture *f = *state;
    struct core_config config = carma_config();

    config.learn = false;
    reconfigure(f, &config);
    run_once(f, "w", 30 * GIB, 16 * GIB);
    submit_workload(f, "w", 1, 30 * GIB, -1);
    decide(f);
    assert_int_equal(f->decisions.items[0].placed.reserved_bytes, 30 * GIB);
}

static void settle_and_sample(struct fixture *f, int32_t activity)
{
    f->now_ns += SECONDS(700);
    sample(f, 0, GIB, 0, activity);
}

static void test_activity_is_learned_alone(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    submit_workload(f, "w", 1, GIB, -1);
    decide(f);
    assert_int_equal(learned_activity(core_find_job(f->core, 1)), LEARN_PRIOR_PERMILLE);
    f->now_ns += SECONDS(149); /* window 90 s, loading 60 s */
    sample(f, 0, GIB, 0, 200);
    assert_int_equal(learned_activity(core_find_job(f->core, 1)), LEARN_PRIOR_PERMILLE);
    for (int i = 0; i < 8; i++)
        settle_and_sample(f, 200);
    assert_in_range(learned_activity(core_find_job(f->core, 1)), 198, 210);
}

static void test_activity_is_learned_by_regression(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "known", 1, GIB, -1);
    decide(f);
    for (int i = 0; i < 8; i++)
        settle_and_sample(f, 300);
    submit_workload(f, "new", 1, GIB, -1);
    decide(f);
    for (int i = 0; i < 8; i++)
        settle_and_sample(f, 370); /* 1 - 0.7 x 0.9 */
    assert_in_range(learned_activity(core_find_job(f->core, 1)), 270, 330);
    assert_in_range(learned_activity(core_find_job(f->core, 2)), 70, 140);
}

static void test_what_is_learned_on_one_gpu_opens_another(void **state)
{
    struct fixture *f = *state;
    struct core_config config = carma_config();

    config.max_slowdown_permille = 1500;
    reconfigure(f, &config);
    keep_gpus(f, 2);
    submit_workload(f, "w", 1, 39 * GIB, -1);
    submit_workload(f, "w", 1, GIB, -1);
    submit_workload(f, "", 1, GIB, 900);
    decide(f); /* (0.6 + 0.9) / 0.96 = 1.56 */
    assert_string_equal(placed_on(f, 2), "1");
    assert_string_equal(placed_on(f, 3), "");
    for (int i = 0; i < 8; i++)
        settle_and_sample(f, 200); /* of GPU 0 */
    decide(f);                     /* (0.2 + 0.9) / 0.92 = 1.20 */
    assert_string_equal(placed_on(f, 3), "1");
}

static void test_a_sample_is_due_when_it_can_teach(void **state)
{
    struct fixture *f = *state;
    struct record due = {.type = RECORD_SAMPLE};

    use_carma(f);
    submit_workload(f, "w", 1, GIB, -1);
    decide(f);
    due.sample = (struct record_sample){0, GIB, 0, 200, -1, -1};
    due.at_ns = f->now_ns + core_learning_delay_ns(f->core) - 1;
    assert_false(core_sample_is_due(f->core, &due)); /* nothing waits, nothing to learn yet */
    due.at_ns++;
    assert_true(core_sample_is_due(f->core, &due));
}

/* ---- Trimming ---- */

static void test_reservations_are_trimmed_to_what_was_seen(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "", 1, 39 * GIB, 100);
    submit_workload(f, "", 1, 25 * GIB, 100);
    decide(f);
    memory_observed(f, 1, 0, 10 * GIB);
    f->now_ns += SECONDS(60) - 1;
    decide(f);
    assert_int_equal(f->decisions.count, 0);
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + 1);
    f->now_ns += 1;
    decide(f);
    assert_int_equal(decision(f, RECORD_SHRUNK)->shrunk.reserved_bytes, 11 * GIB);
    assert_string_equal(placed_on(f, 2), "0");
}

/* A reservation says where it is from when it is made: nothing has to be guessed from figures that differ. */
static void test_reservations_say_where_they_are_from(void **state)
{
    struct fixture *f = *state;
    struct record record = wants(1, 20 * GIB);

    use_carma(f);
    keep_gpus(f, 1);
    record.submitted.requeue = true;
    submit_record(f, record);
    decide(f);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reservation_source, SOURCE_DECLARED);
    memory_observed(f, 1, 0, 10 * GIB);
    f->now_ns += SECONDS(60);
    decide(f);
    assert_int_equal(decision(f, RECORD_SHRUNK)->shrunk.reservation_source, SOURCE_OBSERVED);
    exits(f, 1, EXIT_TIMEOUT, -1);
    decide(f); /* declared, shrunk, requeued */
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reservation_source, SOURCE_OBSERVED);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reservation_source, SOURCE_OBSERVED);
    memory_observed(f, 1, 0, 10 * GIB);
    exits(f, 1, EXIT_GPU_OOM, 4 * GIB);
    decide(f);
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reservation_source, SOURCE_RAISED);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reservation_source, SOURCE_RAISED);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reserved_bytes, 14 * GIB);
}

/* Records of an earlier carma name no source: the known part follows from the figures. */
static void test_sources_that_an_earlier_carma_did_not_write(void **state)
{
    struct fixture *f = *state;
    struct record placed = {.type = RECORD_PLACED, .placed = {.count = 1, .reservation_source = SOURCE_COUNT}};

    use_carma(f);
    submit_workload(f, "w", 1, 8 * GIB, 100);
    submit_workload(f, "w", 1, 8 * GIB, 100);
    for (placed.job = 1; placed.job <= 2; placed.job++) {
        placed.placed.gpus[0] = (uint32_t)placed.job;
        placed.placed.reserved_bytes = (int64_t)placed.job * 8 * GIB;
        apply(f, placed);
    }
    assert_int_equal(core_find_job(f->core, 1)->reservation_source, SOURCE_RECORDED); /* as submitted */
    assert_int_equal(core_find_job(f->core, 2)->reservation_source, SOURCE_LEARNED);
}

/* A quarter more than the observed memory may be more than the GPU has. */
static void test_a_reservation_is_never_larger_than_the_gpu(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    submit_workload(f, "w", 1, -1, 100);
    decide(f);
    memory_observed(f, 1, 0, 35 * GIB);
    f->now_ns += SECONDS(60);
    decide(f);
    assert_int_equal(decision(f, RECORD_SHRUNK)->shrunk.reserved_bytes, TOTAL);
}

static void test_a_whole_gpu_is_given_back_once_the_need_is_seen(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "w", 1, -1, 100);
    submit_workload(f, "w", 1, -1, 100);
    decide(f);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reserved_bytes, -1);
    memory_observed(f, 1, 0, 8 * GIB);
    f->now_ns += SECONDS(60);
    decide(f); /* a quarter more: the first run's estimate, and the second's from the first run */
    assert_int_equal(decision(f, RECORD_SHRUNK)->shrunk.reserved_bytes, 10 * GIB);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reserved_bytes, 10 * GIB);
    assert_string_equal(placed_on(f, 2), "0");
}

static void test_an_exclusive_job_gives_nothing_back(void **state)
{
    struct fixture *f = *state;
    struct record record = wants(1, -1);

    use_carma(f);
    record.submitted.exclusive = true;
    submit_record(f, record);
    decide(f);
    memory_observed(f, 1, 0, 8 * GIB);
    f->now_ns += SECONDS(60);
    decide(f);
    assert_int_equal(f->decisions.count, 0);
}

/* ---- Backfill ---- */

static void test_backfill_passes_a_blocked_head(void **state)
{
    struct fixture *f = *state;
    uint64_t jobs[6];

    use_carma(f);
    submit_workload(f, "", 1, 10 * GIB, 100);
    decide(f);
    jobs[0] = submit_workload(f, "", 4, 35 * GIB, 100);
    for (int i = 1; i < 6; i++) /* the window is 4: those behind it do not come to be looked at */
        jobs[i] = submit_workload(f, "", 1, i == 5 ? GIB : 40 * GIB, 100);
    decide(f);
    for (int i = 1; i < 4; i++)
        assert_string_not_equal(placed_on(f, jobs[i]), "");
    assert_string_equal(placed_on(f, jobs[0]), "");
    assert_string_equal(placed_on(f, jobs[4]), "");
    assert_string_equal(placed_on(f, jobs[5]), "0");
}

static void test_backfill_window_ends(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "", 1, 30 * GIB, 100);
    decide(f);
    for (int i = 0; i < 5; i++) /* the head and four behind it do not fit */
        submit_workload(f, "", 1, 35 * GIB, 100);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    assert_int_equal(f->decisions.count, 0);
    assert_reason(f, 7, "5 jobs before it in the queue, first of them job 2");
    job_event(f, RECORD_CANCELLED, 3);
    decide(f);
    assert_string_equal(placed_on(f, 7), "0");
}

static void test_the_head_has_gpus_reserved_in_the_end(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 2);
    submit_workload(f, "", 1, 10 * GIB, 100);
    submit_workload(f, "", 1, 5 * GIB, 100);
    decide(f);
    submit_workload(f, "", 1, 39 * GIB, 100); /* the head: 1 GiB of margin short of any GPU */
    decide(f);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    assert_string_equal(placed_on(f, 4), "1"); /* passes it */
    f->now_ns += SECONDS(3600) - 1;
    decide(f);
    assert_null(decision(f, RECORD_RESERVED));
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + 1);
    f->now_ns += 1;
    decide(f);
    assert_non_null(decision(f, RECORD_RESERVED));
    assert_int_equal(decision(f, RECORD_RESERVED)->reserved.count, 1);
    assert_int_equal(decision(f, RECORD_RESERVED)->reserved.gpus[0], 1); /* has more free memory */
    submit_workload(f, "", 1, GIB, 100);
    submit_workload(f, "", 1, 39 * GIB, 100);
    decide(f);
    assert_string_equal(placed_on(f, 5), "0");
    exits(f, 2, EXIT_COMPLETED, -1);
    exits(f, 4, EXIT_COMPLETED, -1);
    decide(f); /* free, and nobody else's */
    assert_string_equal(placed_on(f, 3), "1");
    assert_int_equal(core_gpu(f->core, 1)->reserved_for, 0);
}

static void test_a_reservation_ends_with_its_job(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "", 1, 10 * GIB, 100);
    decide(f);
    submit_workload(f, "", 1, 39 * GIB, 100);
    submit_workload(f, "", 1, 30 * GIB, 100);
    decide(f);
    f->now_ns += SECONDS(3600);
    decide(f);
    assert_int_equal(core_gpu(f->core, 0)->reserved_for, 2);
    assert_reason(f, 3, "the GPUs left are kept for job 2, which has waited long enough");
    job_event(f, RECORD_CANCELLED, 2);
    assert_int_equal(core_gpu(f->core, 0)->reserved_for, 0);
}

static void test_others_use_what_a_reservation_leaves(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 1);
    submit_workload(f, "", 1, 10 * GIB, 100);
    decide(f);
    submit_workload(f, "", 1, 30 * GIB, 100);
    decide(f);
    f->now_ns += SECONDS(3600);
    decide(f);
    submit_workload(f, "", 1, 6 * GIB, 100);
    submit_workload(f, "", 1, 4 * GIB, 100); /* with the third no longer beside the second: 30 + 6 + 4 > 39 */
    submit_workload(f, "", 1, 3 * GIB, 100);
    decide(f);
    assert_string_equal(placed_on(f, 3), "0");
    assert_string_equal(placed_on(f, 4), "");
    assert_string_equal(placed_on(f, 5), "0");
    exits(f, 1, EXIT_COMPLETED, -1);
    decide(f);
    assert_string_equal(placed_on(f, 2), "0");
}

static void test_needs_more_than_any_gpu(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    submit_workload(f, "w", 1, 20 * GIB, 100);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    memory_observed(f, 1, 0, 38 * GIB);
    exits(f, 1, EXIT_GPU_OOM, 2 * GIB + 1);
    decide(f);
    assert_non_null(decision(f, RECORD_GAVE_UP));
    submit_workload(f, "w", 1, 20 * GIB, 100); /* of the same kind: gets a whole GPU to try */
    decide(f);
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reserved_bytes, TOTAL);
}

static void test_an_idle_gpu_that_is_reserved_stays_idle(void **state)
{
    struct fixture *f = *state;

    use_carma(f);
    keep_gpus(f, 2);
    submit_workload(f, "", 1, 10 * GIB, 100);
    decide(f);
    submit_workload(f, "", 2, 39 * GIB, 100);
    decide(f);
    f->now_ns += SECONDS(3600);
    decide(f);
    assert_int_equal(core_gpu(f->core, 1)->reserved_for, 2);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    assert_string_equal(placed_on(f, 3), "");
    exits(f, 1, EXIT_COMPLETED, -1);
    decide(f);
    assert_string_equal(placed_on(f, 2), "0,1");
}

/* ---- Retry ---- */

static void crash_beside(struct fixture *f, uint32_t retry, int64_t requested)
{
    struct core_config config = carma_config();

    config.oom_retry = retry;
    reconfigure(f, &config);
    submit_workload(f, "", 1, 20 * GIB, 100);
    for (uint32_t g = 1; g < GPUS; g++)
        submit_workload(f, "", 1, 38 * GIB, 100);
    decide(f);
    memory_observed(f, 1, 0, 20 * GIB);
    submit_workload(f, "", 1, 10 * GIB, 100); /* joins the first */
    decide(f);
    assert_string_equal(placed_on(f, 5), "0");
    memory_observed(f, 5, 0, 12 * GIB);
    exits(f, 5, EXIT_GPU_OOM, requested);
    decide(f);
}

static void test_informed_retry_books_what_the_message_says(void **state)
{
    struct fixture *f = *state;

    crash_beside(f, OOM_RETRY_INFORMED, 3 * GIB);
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reserved_bytes, 15 * GIB);
    assert_string_equal(placed_on(f, 5), "0"); /* fits beside the first again, with its need reserved */
}

static void test_retry_by_steps(void **state)
{
    struct fixture *f = *state;

    crash_beside(f, OOM_RETRY_STEP, 3 * GIB); /* it could have had 40 - 20 */
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reserved_bytes, 25 * GIB);
    assert_string_equal(placed_on(f, 5), "");
}

static void test_informed_retry_without_a_figure_takes_a_step(void **state)
{
    struct fixture *f = *state;

    crash_beside(f, OOM_RETRY_INFORMED, -1);
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reserved_bytes, 25 * GIB);
}

static void test_the_second_crash_goes_to_an_idle_gpu(void **state)
{
    struct fixture *f = *state;

    crash_beside(f, OOM_RETRY_INFORMED, 3 * GIB);
    memory_observed(f, 5, 0, 15 * GIB);
    exits(f, 5, EXIT_GPU_OOM, GIB);
    decide(f);
    assert_string_equal(placed_on(f, 5), "");
    assert_reason(f, 5, "needs 1 GPU to itself, 0 are idle");
    submit_workload(f, "", 1, GIB, 100);
    decide(f); /* others are placed around it */
    assert_string_not_equal(placed_on(f, 6), "");
}

/* ---- Other variants ---- */

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
        CASE(test_slowdown_is_sum_over_union),
        CASE(test_bound_is_that_of_whoever_accepts_least),
        CASE(test_goes_where_least_is_delivered),
        CASE(test_of_equals_the_one_with_most_memory),
        CASE(test_memory_is_learned_with_a_margin),
        CASE(test_the_margin_falls_with_the_runs),
        CASE(test_the_learned_quantile_holds),
        CASE(test_what_is_declared_is_believed),
        CASE(test_nothing_is_learned_where_that_is_off),
        CASE(test_activity_is_learned_alone),
        CASE(test_activity_is_learned_by_regression),
        CASE(test_what_is_learned_on_one_gpu_opens_another),
        CASE(test_a_sample_is_due_when_it_can_teach),
        CASE(test_reservations_are_trimmed_to_what_was_seen),
        CASE(test_reservations_say_where_they_are_from),
        CASE(test_sources_that_an_earlier_carma_did_not_write),
        CASE(test_a_reservation_is_never_larger_than_the_gpu),
        CASE(test_a_whole_gpu_is_given_back_once_the_need_is_seen),
        CASE(test_an_exclusive_job_gives_nothing_back),
        CASE(test_backfill_passes_a_blocked_head),
        CASE(test_backfill_window_ends),
        CASE(test_the_head_has_gpus_reserved_in_the_end),
        CASE(test_a_reservation_ends_with_its_job),
        CASE(test_others_use_what_a_reservation_leaves),
        CASE(test_needs_more_than_any_gpu),
        CASE(test_an_idle_gpu_that_is_reserved_stays_idle),
        CASE(test_informed_retry_books_what_the_message_says),
        CASE(test_retry_by_steps),
        CASE(test_informed_retry_without_a_figure_takes_a_step),
        CASE(test_the_second_crash_goes_to_an_idle_gpu),
        CASE(test_each_cap_alone_occupancy),
        CASE(test_each_cap_alone_dram),
        CASE(test_each_cap_alone_all_at_the_cap),
        CASE(test_together_busy_but_light),
        CASE(test_together_busy_and_occupied),
        CASE(test_together_busy_and_memory_bound),
        CASE(test_together_idle_but_occupied),
        CASE(test_together_nothing_else_measured),
        CASE(test_paced_loop_takes_its_time),
        CASE(test_first_fit),
        CASE(test_best_fit),
    };

    return cmocka_run_group_tests_name("mapper", tests, NULL, NULL);
}
