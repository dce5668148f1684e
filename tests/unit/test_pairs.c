/* What the core learns of workloads beside one another, and how its verdicts change by that (core/learn/pairs.h). */
#include "placement_fixture.h"
#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/share/slowdown.h"
#include "core/users.h"

#define ALONE 10000000 /* millionths of a step in a second */

static void setup_node(struct fixture *f, uint32_t share, int32_t bound)
{
    struct core_config config = carma_config();

    config.max_slowdown_permille = bound;
    reconfigure(f, &config);
    for (uint32_t g = 0; g < GPUS; g++) {
        struct record back = {.type = RECORD_GPU_BACK, .gpu = {.gpu = g, .total_bytes = TOTAL, .share = share}};
        apply(f, back);
        sample(f, g, 0, 0, 0);
    }
    keep_gpus(f, 1);
}

static void later(struct fixture *f, int64_t s)
{
    f->now_ns += SECONDS(s);
}

static uint64_t starts(struct fixture *f, const char *workload)
{
    uint64_t job = submit_workload(f, workload, 1, GIB, 500);

    decide(f);
    if (*placed_on(f, job)) {
        job_event(f, RECORD_STARTED, job);
        memory_observed(f, job, 0, GIB);
    }
    later(f, 3600);
    return job;
}

/* As another policy would have placed it, or a person. */
static uint64_t is_put(struct fixture *f, const char *workload, uint32_t share)
{
    struct record placed = {.type = RECORD_PLACED, .job = submit_workload(f, workload, 1, GIB, 500)};

    placed.placed = (struct record_placed){.count = 1, .reserved_bytes = GIB, .share = share, .fence_bytes = -1};
    apply(f, placed);
    job_event(f, RECORD_STARTED, placed.job);
    memory_observed(f, placed.job, 0, GIB);
    later(f, 3600);
    return placed.job;
}

static void progresses(struct fixture *f, uint64_t job, int64_t speed, int64_t total)
{
    struct record record = {.type = RECORD_PROGRESSED, .job = job};

    later(f, 600);
    record.progressed = (struct record_progressed){speed, SECONDS(300), total};
    apply(f, record);
}

static void is_active(struct fixture *f, int32_t permille)
{
    later(f, 900);
    sample(f, 0, GIB, 0, permille);
}

static void ends(struct fixture *f, uint64_t job)
{
    exits(f, job, EXIT_COMPLETED, -1);
    later(f, 3600);
}

static bool runs(const struct fixture *f, uint64_t job)
{
    return core_find_job(f->core, job)->placement_count > 0;
}

/* Each alone, then both together, so much slower: `readings` times. */
static void meet(struct fixture *f, uint32_t share, int32_t a_permille, int32_t b_permille, int readings)
{
    uint64_t a = starts(f, "a"), b;

    progresses(f, a, ALONE, 100);
    ends(f, a);
    b = starts(f, "b");
    progresses(f, b, ALONE, 200);
    ends(f, b);
    a = is_put(f, "a", share);
    b = is_put(f, "b", share);
    for (int i = 0; i < readings; i++) {
        progresses(f, a, (int64_t)ALONE * 1000 / a_permille, 100);
        progresses(f, b, (int64_t)ALONE * 1000 / b_permille, 200);
    }
    ends(f, a);
    ends(f, b);
}

/* So much slower they were together, so often, on a GPU shared so; then "b", which is returned, comes to "a". */
static uint64_t meet_again(struct fixture *f, uint32_t share, int32_t bound, int32_t a_permille, int32_t b_permille,
                           int readings)
{
    setup_node(f, share, bound);
    meet(f, share, a_permille, b_permille, readings);
    starts(f, "a");
    return starts(f, "b");
}

/* A neighbour that stands still is none: a job's speed beside it says nothing of the two. */
TEST_BETWEEN(test_a_suspended_neighbour_teaches_nothing, setup, teardown)
{
    struct fixture *f = *state;
    uint64_t a, b;

    setup_node(f, SHARE_MPS, 0);
    a = is_put(f, "a", SHARE_MPS);
    b = is_put(f, "b", SHARE_MPS);
    assert_true(commanded(f, COMMAND_SUSPEND, b, 0));
    later(f, 3600);
    progresses(f, a, ALONE, 100);
    assert_int_equal(HASH_COUNT(f->core->measures), 0);
    assert_true(commanded(f, COMMAND_RESUME, b, 0));
    later(f, 3600);
    progresses(f, a, ALONE / 2, 100);
    assert_int_equal(HASH_COUNT(f->core->measures), 1);
}

/* Nobody joins a job that is seen to be slowed beyond its bound, until it is not any more, or its neighbours have gone.
 */
TEST_BETWEEN(test_nobody_joins_a_job_that_is_slowed_beyond_its_bound, setup, teardown)
{
    for (int left = 0; left < 2; left++) {
        struct fixture *f = *state;
        uint64_t a, b, c;

        setup_node(f, SHARE_MPS, 2000);
        a = starts(f, "a");
        progresses(f, a, ALONE, 100);
        ends(f, a);
        a = is_put(f, "a", SHARE_MPS);
        b = is_put(f, "b", SHARE_MPS);
        progresses(f, a, ALONE / 4, 200); /* of other steps */
        progresses(f, b, ALONE / 4, 100); /* how fast it is alone is not known */
        assert_int_equal(core_reason(f->core, a, f->now_ns).code, REASON_NONE);
        progresses(f, a, ALONE / 4, 100);
        c = submit_workload(f, "c", 1, GIB, 100);
        assert_waits(f, c);
        assert_reason(f, c,
                      "job 2 on GPU 0 runs 4.00x slower than alone; its limit is 2.00x: no job joins it meanwhile");
        assert_reason(f, a, "runs 4.00x slower than alone on GPU 0; the limit is 2.00x: no job joins it meanwhile");
        assert_int_equal(core_reason(f->core, b, f->now_ns).code, REASON_NONE);
        if (left)
            ends(f, b);
        else
            progresses(f, a, ALONE, 100);
        assert_starts(f, c);
        teardown(state);
        setup(state);
    }
}

/* The youngest beside a job that has been slowed for ten minutes: once, if it takes that, and of the same user. */
static const struct {
    int reports; /* beyond the bound */
    bool requeue;
    uint32_t uid;
    bool moved;
} who_is_moved_off[] = {{2, true, 0, true}, {1, true, 0, false}, {2, false, 0, false}, {2, true, 7, false}};

CORE_EACH_ROW(test_who_is_moved_off, who_is_moved_off)
{
    struct record submitted = wants(1, GIB), placed = {.type = RECORD_PLACED};
    uint64_t job;

    setup_node(f, SHARE_MPS, 2000);
    uint64_t slowed = is_put(f, "a", SHARE_TIME_SLICE);
    progresses(f, slowed, ALONE, 100); /* at least so fast it is alone */
    submitted.submitted.uid = row->uid;
    submitted.submitted.requeue = row->requeue;
    submitted.submitted.signal = 10;
    submitted.submitted.signal_before_ns = SECONDS(60);
    submitted.submitted.time_limit_ns = SECONDS(360000);
    placed.job = job = submit_record(f, submitted);
    uint64_t place = core_find_job(f->core, job)->place;
    placed.placed =
        (struct record_placed){.count = 1, .reserved_bytes = GIB, .share = SHARE_TIME_SLICE, .fence_bytes = -1};
    for (int run = 0; run < 2; run++) {
        if (!runs(f, job))
            apply(f, placed);
        job_event(f, RECORD_STARTED, job);
        later(f, 3600);
        progresses(f, slowed, ALONE, 100);
        for (int k = 0; k < row->reports; k++)
            progresses(f, slowed, ALONE / 4, 100);
        const struct record *moved = decided(f, RECORD_MOVED, job);
        assert_int_equal(moved != NULL, row->moved && run == 0);
        if (!moved)
            break;
        assert_int_equal(moved->moved.slowed, slowed);
        assert_int_equal(moved->moved.slowed_permille, 4000);
        exits(f, job, EXIT_TIMEOUT, -1);
        assert_non_null(decided(f, RECORD_REQUEUED, job));
        assert_int_equal(core_find_job(f->core, job)->place, place); /* not behind all others */
    }
}

/* By the prediction two jobs of 50% SM activity pay as clients of a server, and are beyond the bound in turns. */
static const struct {
    uint32_t share;
    int32_t bound, a_permille, b_permille;
    int readings;
    const char *reason; /* for which they are not placed together again; NULL: they are */
} pairs_that_met[] = {
    {SHARE_MPS, 2000, 1900, 2410, 2, "one of such a pair ran 2.41x slower before; the limit is 2.00x"},
    {SHARE_MPS, 2000, 1900, 2410, 1, NULL}, /* one reading condemns nobody */
    {SHARE_TIME_SLICE, 1300, 1200, 1250, 2, NULL},
    {SHARE_TIME_SLICE, 0, 1750, 1750, 2, "such a pair did 114% of the work of one job before; the least is 120%"},
};

CORE_EACH_ROW(test_pairs_that_met, pairs_that_met)
{
    uint64_t job = meet_again(f, row->share, row->bound, row->a_permille, row->b_permille, row->readings);

    assert_int_equal(runs(f, job), !row->reason);
    if (row->reason) {
        CLEANUP(free_ptr)
        char *text = xasprintf("job 5 on GPU 0: %s", row->reason);
        assert_reason(f, job, text);
        assert_int_equal(core_reason(f->core, job, f->now_ns).code, REASON_PAIR);
    }
}

/* How much GPU 0's residents are expected to be slowed. */
static int32_t worst_permille(const struct fixture *f)
{
    return slowdown_predict(f->core, core_gpu(f->core, 0), NULL).worst_permille;
}

/* The second reading was good: half of each counts. */
CORE_TEST(test_readings_are_balanced)
{
    uint64_t b = meet_again(f, SHARE_MPS, 2000, 3000, 3000, 1);

    assert_true(runs(f, b));
    progresses(f, b - 1, ALONE, 100);
    progresses(f, b, ALONE, 200);
    assert_int_equal(worst_permille(f), 1500);
}

CORE_TEST(test_a_good_pair_is_predicted_by_its_readings)
{
    assert_true(runs(f, meet_again(f, SHARE_TIME_SLICE, 1300, 1200, 1250, 2)));
    assert_int_equal(worst_permille(f), 1250);
    assert_false(runs(f, starts(f, "c"))); /* of which nothing is known but the prediction */
}

CORE_TEST(test_clients_that_lost_by_it)
{
    uint64_t job = meet_again(f, SHARE_MPS, 0, 2050, 2050, 2);

    assert_true(runs(f, job)); /* no more than readings differ by: it started earlier */
    for (int i = 0; i < 12; i++) {
        progresses(f, job, (int64_t)ALONE * 1000 / 2400, 200);
        progresses(f, job - 1, (int64_t)ALONE * 1000 / 2400, 100);
    }
    ends(f, job);
    assert_false(runs(f, job = starts(f, "b")));
    assert_reason(f, job, "job 5 on GPU 0: such a pair did 83% of the work of one job before; the least is 95%");
}

/* After a month nobody knows whether the program, its data or the driver is the same. */
CORE_TEST(test_a_bad_pair_is_forgotten)
{
    uint64_t job = meet_again(f, SHARE_MPS, 2000, 1900, 2410, 2);

    assert_false(runs(f, job));
    assert_true(runs(f, starts(f, "c"))); /* with others both go on */
    ends(f, f->last_job);
    later(f, 29 * 86400 - 2 * 3600);
    sample(f, 0, GIB, 0, -1);
    assert_waits(f, job);
    later(f, 2 * 86400);
    sample(f, 0, GIB, 0, -1);
    assert_starts(f, job);
}

/* Of three, the effect of two on each other is the least that is to be expected. */
CORE_TEST(test_a_bad_pair_among_more_than_two)
{
    setup_node(f, SHARE_MPS, 2000);
    meet(f, SHARE_MPS, 1900, 2410, 2);
    starts(f, "c");
    starts(f, "a");
    assert_int_equal(core_gpu(f->core, 0)->resident_count, 2);
    assert_false(runs(f, starts(f, "b")));
}

/* What counts other steps, runs by another mode, had a neighbour for a moment or of two tells nothing of the pair. */
CORE_TEST(test_what_tells_nothing)
{
    struct record record = {.type = RECORD_PROGRESSED};
    uint64_t a, b;

    setup_node(f, SHARE_MPS, 0);
    meet(f, SHARE_MPS, 1500, 1500, 2);
    a = is_put(f, "a", SHARE_MPS);
    b = is_put(f, "b", SHARE_MPS);
    assert_int_equal(worst_permille(f), 1500);
    is_put(f, "c", SHARE_MPS);
    uint32_t measures = HASH_COUNT(f->core->measures);
    progresses(f, a, ALONE / 9, 100);
    assert_int_equal(HASH_COUNT(f->core->measures), measures);
    ends(f, b + 1);
    f->now_ns -= SECONDS(3600);
    record.job = a;
    record.progressed = (struct record_progressed){ALONE / 9, SECONDS(300), 100};
    apply(f, record);
    assert_int_equal(worst_permille(f), 1500);
    later(f, 3600);
    apply(f,
          (struct record){.type = RECORD_SAMPLE, .sample = {.used_bytes = GIB, .smact_permille = -1, .others = true}});
    progresses(f, a, ALONE / 9, 100); /* beside another's process */
    assert_int_equal(worst_permille(f), 1500);
    sample(f, 0, GIB, 0, -1);
    progresses(f, a, ALONE, 7); /* steps of another loop */
    progresses(f, a, ALONE, 7);
    const struct profile *of_a = core_find_job(f->core, a)->profile;
    const struct profile *of_b = core_find_job(f->core, b)->profile;
    assert_int_not_equal(pairs_slowdown(f->core, core_gpu(f->core, 0), of_b, of_a, SHARE_MPS), 0);
    assert_int_equal(pairs_slowdown(f->core, core_gpu(f->core, 0), of_a, of_b, SHARE_MPS), 0);
    assert_int_equal(pairs_slowdown(f->core, core_gpu(f->core, 0), of_b, of_a, SHARE_TIME_SLICE), 0);
}

/* Jobs that say nothing of their progress: the GPU was not busier with both than with one. */
CORE_TEST(test_activity_tells_as_well)
{
    uint64_t a, b;

    setup_node(f, SHARE_MPS, 2000);
    a = starts(f, "a");
    is_active(f, 500);
    ends(f, a);
    a = is_put(f, "a", SHARE_MPS);
    b = is_put(f, "b", SHARE_MPS);
    is_active(f, 480);
    is_active(f, 480);
    ends(f, a);
    is_active(f, 500); /* b alone, which was not known before */
    ends(f, b);
    starts(f, "b");
    b = starts(f, "a");
    assert_reason(f, b, "job 4 on GPU 0: one of such a pair ran 2.08x slower before; the limit is 2.00x");
}

/* Three readings say no more than a tenth beyond the prediction (1.33 for two of 50%). */
CORE_TEST(test_activity_is_not_exact)
{
    uint64_t a, b;

    setup_node(f, SHARE_MPS, 1400);
    for (int i = 0; i < 2; i++) {
        a = starts(f, i ? "a" : "b");
        is_active(f, 500);
        ends(f, a);
    }
    a = is_put(f, "a", SHARE_MPS);
    b = is_put(f, "b", SHARE_MPS);
    is_active(f, 700);
    is_active(f, 700);
    assert_int_equal(pairs_slowdown_by_activity(f->core, core_gpu(f->core, 0), core_find_job(f->core, a)->profile,
                                                core_find_job(f->core, b)->profile, SHARE_MPS),
                     1428);
    assert_false(slowdown_predict(f->core, core_gpu(f->core, 0), NULL).measured);
}

/* The records say as much as a snapshot of the state that they made. */
CORE_TEST(test_it_is_kept)
{
    CLEANUP(record_list_release) struct record_list records = {0};

    setup_node(f, SHARE_MPS, 2000);
    meet(f, SHARE_MPS, 1900, 2410, 2);
    struct core *again = restored(f, &records);
    CLEANUP(free_ptr) char *now = core_dump(again);
    assert_non_null(strstr(now, "uid=0 workload=b beside_uid=0 beside=a share=2 kind=0 value=4149377 unit=200"));
    for (size_t i = 0; i < records.count; i++) {
        struct record bad = records.items[i];
        if (bad.type != RECORD_STATE_MEASURE)
            continue;
        core_free(again);
        again = core_new();
        for (size_t k = 0; k < i; k++)
            core_apply(again, &records.items[k], NULL);
        bad.state_measure.kind = PAIRS_KINDS;
        assert_int_not_equal(core_apply(again, &bad, NULL), 0);
        bad = records.items[i];
        bad.state_measure.beside[0] = '?'; /* which has no history */
        assert_int_not_equal(core_apply(again, &bad, NULL), 0);
        bad = records.items[i];
        bad.state_measure.value = 0;
        assert_int_not_equal(core_apply(again, &bad, NULL), 0);
        break;
    }
    core_free(again);
}

/* The measures with the oldest readings go first, and all of a workload that is forgotten. */
CORE_TEST(test_their_number_is_bounded)
{
    struct measure reading = {.readings = 1, .value = 1, .gpu_bytes = TOTAL};
    char name[32];

    for (int i = 0; i < PAIRS_MOST + 10; i++) {
        snprintf(name, sizeof name, "w%d", i);
        reading.key = (struct pairs_key){.of = learn_profile(f->core, user_of(f->core, 0), name)};
        assert_true(pairs_note(f->core, &reading));
        assert_true(HASH_COUNT(f->core->measures) <= PAIRS_MOST);
    }
    assert_string_equal(f->core->measures->key.of->workload, "w10");
    assert_int_equal(learn_find(f->core, 0, "w9")->measures, 0);
    reading.key.beside = learn_find(f->core, 0, "w10");
    assert_true(pairs_note(f->core, &reading));
    assert_int_equal(learn_find(f->core, 0, "w10")->measures, 1); /* its own has gone for it */
    pairs_forget_profile(f->core, reading.key.of);
    assert_int_equal(learn_find(f->core, 0, "w10")->measures, 0);
    assert_int_equal(HASH_COUNT(f->core->measures), PAIRS_MOST - 2);
    reading.key = (struct pairs_key){.of = learn_profile(f->core, user_of(f->core, 7), "w0")};
    for (int i = 0; i <= PAIRS_MOST; i++) { /* a user with many loses his own for them */
        assert_true(pairs_note(f->core, &reading));
        snprintf(name, sizeof name, "w%d", i);
        reading.key = (struct pairs_key){.of = learn_profile(f->core, user_of(f->core, 0), name)};
    }
    assert_int_equal(learn_find(f->core, 7, "w0")->measures, 1);
}

/* How fast a user's job runs is that user's word. How busy a GPU is, where several users' jobs are, teaches nothing;
 * and two users' jobs are not expected to do much more together than predicted. */
CORE_TEST(test_other_users_measure_little)
{
    setup_node(f, SHARE_TIME_SLICE, 0);
    meet(f, SHARE_TIME_SLICE, 1000, 1000, 2); /* they claim that neither is slowed down */
    uint64_t hers = is_put(f, "a", SHARE_TIME_SLICE);
    uint64_t his = is_put(f, "b", SHARE_TIME_SLICE);
    assert_int_equal(slowdown_predict(f->core, core_gpu(f->core, 0), NULL).progress_ppm, 2000000);
    struct profile *a = core_find_job(f->core, hers)->profile;
    struct profile *b = core_find_job(f->core, his)->profile;
    b->user = core_job_by_id(f->core, his)->user = user_of(f->core, 7);
    learn_open_where_placed(f->core, b);
    assert_in_range(slowdown_predict(f->core, core_gpu(f->core, 0), NULL).progress_ppm, 1000000, 1500000);
    is_active(f, 900);
    assert_int_equal(a->variance, b->variance);
    assert_int_equal(core_observed_activity(f->core, 0, "a"), 0);
    b->user = core_job_by_id(f->core, his)->user = user_of(f->core, 0);
    is_active(f, 900);
    assert_int_not_equal(core_observed_activity(f->core, 0, "a"), 0);
}
