/* Predictions by sharing mode (src/core/share/slowdown.h), against values worked out by hand. */

#include <math.h>

#include "placement_fixture.h"
#include "core/share/slowdown.h"

static const uint32_t ADA = 7, BOB = 8;

/* GPU 0, shared like this, with the part of a GPU's SMs; the others are away. */
static void only_gpu(struct fixture *f, uint32_t share, int32_t part_permille)
{
    for (uint32_t i = 0; i < GPUS; i++) {
        struct record record = {.type = i ? RECORD_GPU_LOST : RECORD_GPU_BACK};
        record.gpu = (struct record_gpu){
            .gpu = i, .total_bytes = TOTAL, .share = share, .instance = part_permille, .part_permille = part_permille};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "GPU-%u", i);
        apply(f, record);
    }
    sample(f, 0, 0, 0, 0);
}

/* A whole one beside it, which no job shares and nobody has read yet. */
static void add_gpu_1(struct fixture *f)
{
    apply(f, (struct record){.type = RECORD_GPU_BACK, .gpu = {1, "GPU-1", TOTAL, SHARE_EXCLUSIVE}});
}

static void bound(struct fixture *f, int32_t permille)
{
    use_policy(f, "carma");
    change(f, max_slowdown_permille, permille);
    change(f, backfill, GPUS);
}

static uint64_t submit_active(struct fixture *f, uint32_t uid, int32_t permille)
{
    struct record record = wants(1, GIB);

    record.submitted.uid = uid;
    record.submitted.smact_permille = permille;
    return submit_record(f, record);
}

/* It is there, though the core would not have placed it. */
static uint64_t place_beside(struct fixture *f, uint32_t uid, uint32_t share, int32_t permille)
{
    struct record placed = {.type = RECORD_PLACED, .job = submit_active(f, uid, permille)};

    placed.placed = (struct record_placed){.count = 1, .reserved_bytes = GIB, .share = share, .fence_bytes = -1};
    apply(f, placed);
    return placed.job;
}

static bool runs(const struct fixture *f, uint64_t job)
{
    return core_find_job(f->core, job)->placement_count > 0;
}

static void done(struct fixture *f, uint64_t job)
{
    exits(f, job, EXIT_COMPLETED, -1);
    decide(f);
}

static struct slowdown there(const struct fixture *f)
{
    return slowdown_predict(f->core, core_gpu(f->core, 0), NULL);
}

static void near(int64_t value, int64_t expected, int64_t tolerance)
{
    if (value < expected - tolerance || value > expected + tolerance)
        fail_msg("%" PRId64 " instead of %" PRId64, value, expected);
}

CORE_TEST(test_a_users_jobs_are_clients_of_one_server)
{
    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 0);
    submit_active(f, ADA, 500);
    submit_active(f, ADA, 400);
    decide(f);
    near(there(f).worst_permille, 1310, 1); /* parts of 0.7 as 1 / 0.5 to 1 / 0.6: 0.382 and 0.318 */
    near(there(f).delivered_ppm, 700000, 10);
    near(there(f).progress_ppm, 763636 + 795455, 100);
    assert_int_equal(there(f).turns, 1);
}

/* Two processes that keep the GPU busy all the time gain nothing by turns; of two that hardly use it, both gain. */
CORE_TEST(test_turns_are_taken_where_that_pays)
{
    uint64_t jobs[4];

    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 0);
    jobs[0] = submit_active(f, ADA, 900);
    jobs[1] = submit_active(f, BOB, 900);
    assert_starts(f, jobs[0]);
    assert_false(runs(f, jobs[1]));
    assert_int_equal(core_reason(f->core, jobs[1], f->now_ns).code, REASON_TURNS);
    jobs[2] = submit_active(f, ADA, 300); /* but a client of the same server gains */
    assert_starts(f, jobs[2]);
    done(f, jobs[0]);
    done(f, jobs[2]);
    assert_true(runs(f, jobs[1]));
    done(f, jobs[1]);

    jobs[0] = submit_active(f, ADA, 20);
    jobs[3] = submit_active(f, BOB, 20);
    decide(f);
    assert_true(runs(f, jobs[0]) && runs(f, jobs[3]));
    assert_int_equal(there(f).turns, 2);
}

/* A lease takes turns that do not pay once its job has waited for starvation_timeout. */
CORE_TEST(test_a_starved_lease_takes_turns)
{
    struct record leases[2] = {wants(1, GIB), wants(1, GIB)};
    uint64_t jobs[3];

    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 0);
    change(f, order, ORDER_FAIR);
    jobs[0] = submit_active(f, ADA, 900);
    decide(f);
    for (int i = 0; i < 2; i++) {
        leases[i].submitted.uid = BOB;
        leases[i].submitted.smact_permille = 900;
        leases[i].submitted.external = true;
        leases[i].submitted.waited_ns = f->core->config.starvation_timeout_ns - !i;
        jobs[i + 1] = submit_record(f, leases[i]);
        decide(f);
        assert_int_equal(runs(f, jobs[i + 1]), i);
    }
}

/* Activities of ADA's processes, then of BOB's; 0 ends each. The reference is the formula in floating point. */
static const struct {
    int32_t activities[3];
    int64_t slowdown;
} processes_take_turns[] = {{{300, 300}, 1340}, {{300, 500}, 1465},      {{500, 500}, 1733},     {{50, 820}, 1085},
                            {{900, 900}, 2222}, {{200, 200, 200}, 1430}, {{300, 500, 900}, 2445}};

EACH_ROW(TEST, test_processes_take_turns, processes_take_turns)
{
    struct fixture *f;
    setup((void **)&f);
    only_gpu(f, SHARE_TIME_SLICE, 0);
    for (size_t k = 0; k < 3 && row->activities[k]; k++)
        place_beside(f, ADA, SHARE_TIME_SLICE, row->activities[k]);
    near(there(f).worst_permille, row->slowdown, 2);
    teardown((void **)&f);
}

/* The next job's prediction, and how much it adds, are of one model. */
CORE_TEST(test_a_job_adds_the_difference_of_two_predictions)
{
    const struct gpu *gpu = core_gpu(f->core, 0);

    only_gpu(f, SHARE_AUTO, 0);
    const struct job *next = core_find_job(f->core, submit_active(f, ADA, 400));
    assert_int_equal(slowdown_added_ppm(f->core, gpu, next), 400000);
    place_beside(f, ADA, SHARE_MPS, 300);
    assert_int_equal(slowdown_added_ppm(f->core, gpu, next), 280000); /* what two clients deliver: 0.58 */
    place_beside(f, BOB, SHARE_TIME_SLICE, 50);
    assert_int_equal(slowdown_added_ppm(f->core, gpu, next),
                     slowdown_predict(f->core, gpu, next).delivered_ppm - there(f).delivered_ppm);
}

/* Each user's clients share his turns by MPS. */
CORE_TEST(test_servers_take_turns_and_clients_share_them)
{
    only_gpu(f, SHARE_AUTO, 0);
    place_beside(f, ADA, SHARE_MPS, 300);
    place_beside(f, ADA, SHARE_MPS, 500);
    place_beside(f, BOB, SHARE_TIME_SLICE, 50);
    assert_int_equal(there(f).turns, 2);
    near(there(f).worst_permille, 1431, 2); /* of a client with 0.758 of its speed in 0.921 of the turns */
    near(there(f).progress_ppm, (0.902778 + 0.758333 + 1) * 921429, 2000);
    near(there(f).delivered_ppm, 650000 * 0.921429 + 50000 * 0.921429, 1000);
}

CORE_TEST(test_an_instance_slows_by_its_part)
{
    only_gpu(f, SHARE_MPS, 250);
    bound(f, 2000);
    uint64_t heavy = submit_active(f, ADA, 750);
    assert_starts(f, heavy);                /* there is none that is larger */
    near(there(f).worst_permille, 3072, 1); /* sqrt(1 - 0.75^2 + (0.75 / 0.25)^2) */
    near(there(f).delivered_ppm, 976000, 1000);
    done(f, heavy);

    add_gpu_1(f);
    heavy = submit_active(f, ADA, 750); /* GPU 1 has not been read: it waits for it */
    uint64_t light = submit_active(f, ADA, 200);
    assert_goes_to(f, light, "0");
    assert_false(runs(f, heavy));
    sample(f, 1, 0, 0, 0);
    assert_goes_to(f, heavy, "1");
    done(f, light);
    light = submit_active(f, ADA, -1); /* of unknown activity, and without a bound of its own */
    assert_goes_to(f, light, "0");
}

/* A job of that activity is put there and reports as the model has it. */
static void reports_from(struct fixture *f, uint32_t gpu, double part, double activity, int64_t steps)
{
    double speed = 1e7 / sqrt(1 - activity * activity + activity * activity / part / part);
    struct record placed = {.type = RECORD_PLACED, .job = submit_workload(f, "w", 1, GIB, -1)};

    placed.placed =
        (struct record_placed){.count = 1, .gpus = {gpu}, .reserved_bytes = GIB, .share = SHARE_MPS, .fence_bytes = -1};
    apply(f, placed);
    job_event(f, RECORD_STARTED, placed.job);
    sample(f, gpu, GIB, 0, -1);
    for (int k = 0; k < 3; k++) {
        f->now_ns += SECONDS(600);
        apply(f, (struct record){.type = RECORD_PROGRESSED,
                                 .job = placed.job,
                                 .progressed = {(int64_t)speed, SECONDS(300), steps}});
    }
    done(f, placed.job);
}

/* Speeds on two sizes tell it, as far as they differ by it; on one they tell nothing. */
TEST(test_speeds_on_two_instances_tell_the_activity)
{
    for (int percent = 10; percent <= 112; percent += 17) {
        struct fixture *f;
        setup((void **)&f);
        only_gpu(f, SHARE_MPS, 142);
        change(f, learn, true);
        apply(f, (struct record){.type = RECORD_GPU_BACK,
                                 .gpu = {1, "GPU-1", TOTAL, SHARE_MPS, .instance = 1, .part_permille = 428}});
        sample(f, 1, 0, 0, -1);
        reports_from(f, 0, 0.142, percent / 100.0, 100);
        reports_from(f, 1, 0.428, percent / 100.0, 7); /* passes of another loop */
        assert_int_equal(core_observed_activity(f->core, 0, "w"), 0);
        CLEANUP(record_list_release) struct record_list taken = {0};
        core_free(restored(f, &taken));
        reports_from(f, 1, 0.428, percent / 100.0, 100);
        near(core_observed_activity(f->core, 0, "w"), percent < 100 ? percent * 10 : 990, 25); /* faster than it may */
        teardown((void **)&f);
    }
}

/* Whatever is known of it: its speed on the small one would be a fraction. */
CORE_TEST(test_the_largest_idle_piece_goes_first)
{
    only_gpu(f, SHARE_MPS, 250);
    bound(f, 2000);
    add_gpu_1(f);
    sample(f, 1, 0, 0, 0);
    for (int32_t activity = -1; activity <= 900; activity += activity < 0 ? 101 : 400)
        for (int64_t bytes = -1; bytes <= GIB; bytes += GIB + 1) {
            struct record record = wants(1, bytes);
            record.submitted.smact_permille = activity;
            uint64_t job = submit_record(f, record);
            assert_goes_to(f, job, "1");
            done(f, job);
        }
}

CORE_TEST(test_a_job_takes_an_instance_where_the_larger_gpu_does_not_take_it)
{
    struct record by_mps = wants(1, GIB);

    only_gpu(f, SHARE_MPS, 250);
    bound(f, 2000);
    add_gpu_1(f);
    by_mps.submitted.smact_permille = 750;
    by_mps.submitted.share = SHARE_MPS;
    uint64_t heavy = submit_record(f, by_mps);
    assert_starts(f, heavy);
    done(f, heavy);
    heavy = submit_active(f, ADA, 750);
    assert_waits(f, heavy);
    apply(f, (struct record){.type = RECORD_GPU_LOST, .gpu = {.gpu = 1}});
    assert_starts(f, heavy);
}

/* GPUs are reserved for a starved job where it would start, and others use the instance meanwhile. */
CORE_TEST(test_a_starved_job_reserves_no_instance_that_is_too_small)
{
    only_gpu(f, SHARE_TIME_SLICE, 250);
    bound(f, 2000);
    add_gpu_1(f);
    sample(f, 1, 0, 0, 0);
    uint64_t there = submit_active(f, ADA, 750);
    assert_goes_to(f, there, "1");
    uint64_t heavy = submit_active(f, ADA, 750);
    f->now_ns += core_configuration(f->core)->starvation_timeout_ns;
    decide(f);
    assert_int_equal(core_gpu(f->core, 1)->reserved_for, heavy);
    assert_int_equal(core_gpu(f->core, 0)->reserved_for, 0);
    uint64_t light = submit_active(f, ADA, 200);
    assert_goes_to(f, light, "0");
}

/* Of 0.7, clients of 0.5 and 0.4 have 0.382 and 0.318; one that runs nothing has nothing. */
TEST(test_clients_keep_their_parts_of_the_sms_busy)
{
    const struct slowdown_party parties[] = {{1, 500}, {1, 0}, {1, 400}};
    int32_t busy[3];

    slowdown_busy(parties, 3, 1000, busy);
    assert_int_equal(busy[0], 381);
    assert_int_equal(busy[1], 0);
    assert_int_equal(busy[2], 318);
}

/* The third client of a server, and what is predicted of it: docs by hand in test_rates.c. A setting is for all. */
CORE_TEST(test_the_third_client_has_a_limit_of_its_threads)
{
    static const uint32_t settings[] = {0, 100, 40}, limits[][3] = {{0, 0, 70}, {0, 0, 0}, {40, 40, 40}};

    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 0);
    for (size_t i = 0; i < array_size(settings); i++) {
        uint64_t jobs[3];
        change(f, mps_threads_percent, settings[i]);
        for (size_t k = 0; k < array_size(jobs); k++) {
            jobs[k] = submit_active(f, ADA, 800);
            decide(f);
            assert_int_equal(core_find_job(f->core, jobs[k])->run->threads_percent, limits[i][k]);
        }
        near(there(f).worst_permille, i == 0 ? 3876 : i == 1 ? 2419 : 2456, 10);
        for (size_t k = 0; k < array_size(jobs); k++)
            done(f, jobs[k]);
    }
}

/* Beside a busy client a half-busy one would run at 0.32 of its speed, an equal one at 0.56: 1.79, of which 1.80 may be
 * predicted for a bound of 2.10. */
CORE_TEST(test_a_busier_job_may_come_where_one_that_is_less_busy_may_not)
{
    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 2100);
    submit_active(f, ADA, 880);
    uint64_t half = submit_active(f, ADA, 500);
    uint64_t busy = submit_active(f, ADA, 880);
    decide(f);
    assert_false(runs(f, half));
    assert_int_equal(core_reason(f->core, half, f->now_ns).cap_permille, 1800);
    assert_true(runs(f, busy));
    near(there(f).worst_permille, 1786, 1);
}

/* Whether a job of Ada would be taken beside the residents, by the whole prediction. */
static bool is_taken(struct fixture *f, uint32_t share, int32_t permille)
{
    struct record record = wants(1, GIB);

    record.submitted.uid = ADA;
    record.submitted.smact_permille = permille;
    record.submitted.share = share;
    uint64_t job = submit_record(f, record);
    struct slowdown with = slowdown_predict(f->core, core_gpu(f->core, 0), core_find_job(f->core, job));
    apply(f, (struct record){.type = RECORD_CANCELLED, .job = job});
    return with.worst_permille <= slowdown_most_predicted(&with, 2100) &&
           slowdown_pays(f->core, core_gpu(f->core, 0), &with);
}

/* Beside any clients and processes: no band is left out that has an activity with which a job would be taken. */
CORE_TEST(test_no_job_that_would_be_taken_is_of_another_band)
{
    uint32_t taken = 0, left_out = 0;
    uint64_t draw = 1;

    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 2100);
    change(f, order, ORDER_FIFO);
    for (int i = 0; i < 150; i++) {
        uint64_t residents[4];
        uint32_t count = 1 + draw % 4;
        change(f, mps_threads_percent, i % 2 ? 0 : 100);
        for (uint32_t k = 0; k < count; k++) {
            draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            residents[k] = place_beside(f, draw >> 33 & 1 ? ADA : BOB, draw >> 34 & 3 ? SHARE_MPS : SHARE_TIME_SLICE,
                                        (int32_t)(draw >> 40 & 1023) % 1000);
        }
        for (int32_t activity = 0; activity <= 1000; activity += 3) {
            bool in =
                slowdown_bands(f->core, core_gpu(f->core, 0), user_find(f->core, ADA)) >> slowdown_band(activity) & 1;
            bool takes = is_taken(f, SHARE_MPS, activity) || is_taken(f, SHARE_TIME_SLICE, activity);
            if (takes && !in)
                fail_msg("case %d: a job with %d permille is left out", i, activity);
            taken += takes;
            left_out += !in;
        }
        for (uint32_t k = 0; k < count; k++)
            exits(f, residents[k], EXIT_COMPLETED, -1);
    }
    assert_true(taken > 500 && left_out > 10000);
}

/* The clients of a server that all users share take no turns, of any user. */
CORE_TEST(test_one_server_for_all_has_no_turns)
{
    only_gpu(f, SHARE_AUTO, 0);
    bound(f, 0);
    change(f, mps_multiuser, true);
    submit_active(f, ADA, 900);
    submit_active(f, BOB, 900);
    decide(f);
    assert_int_equal(there(f).turns, 1);
    near(there(f).worst_permille, 1800 * 1000 / 990, 1);
}
