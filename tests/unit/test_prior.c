/* Jobs of unknown need: their request, their fence, and the jobs beside them (src/core/guess/prior.h). */
#include "core_fixture.h"
#include "core/need/fence.h"
#include "core/guess/program_history.h"
#include "core/learn/learn.h"
#include "core/users.h"

static void share_by_mps(struct fixture *f)
{
    share_by_guess(f, SHARE_MPS, TOTAL);
}

#define PRIOR_TEST(name) CORE_TEST_AFTER(share_by_mps, name)

static int64_t request_of(struct fixture *f, uint64_t job, uint32_t *source)
{
    return core_reservation(f->core, core_find_job(f->core, job), source);
}

static const struct record *placed(struct fixture *f, uint64_t job)
{
    return decided(f, RECORD_PLACED, job);
}

static void settle(struct fixture *f, uint64_t job, int64_t bytes)
{
    memory_observed(f, job, 0, bytes);
    f->now_ns += SECONDS(31);
}

static void ask_for(struct fixture *f, const char *workload, int64_t expected)
{
    uint64_t job = submit_of(f, workload, -1);
    uint32_t source;

    assert_int_equal(request_of(f, job, &source), expected);
    assert_int_equal(source, SOURCE_PRIOR);
    apply(f, (struct record){.type = RECORD_CANCELLED, .job = job});
}

/* A run by itself; leaves nobody. */
static void runs_once(struct fixture *f, const char *workload, int64_t bytes)
{
    uint64_t job = submit_of(f, workload, 30 * GIB);

    assert_non_null(placed(f, job));
    memory_observed(f, job, 0, bytes);
    exits(f, job, EXIT_COMPLETED, -1);
}

/* Of a program, or ("n") of none. */
static void run_some(struct fixture *f, const char *program, int first, int count, int64_t bytes)
{
    for (int i = first; i < first + count; i++) {
        char workload[16];
        snprintf(workload, sizeof workload, "%s%d", program, i);
        runs_once(f, workload, bytes);
    }
}

static void run_workloads(struct fixture *f, int first, int count, int64_t bytes)
{
    run_some(f, "n", first, count, bytes);
}

PRIOR_TEST(test_a_job_of_unknown_need_requests_a_quantile)
{
    struct record exclusive = wants(1, -1);
    uint64_t job = submit_of(f, "new", -1);
    uint32_t source;

    assert_int_equal(request_of(f, job, &source), LIKELY);
    assert_int_equal(source, SOURCE_PRIOR);
    change(f, prior_quantile_permille, 500);
    assert_int_equal(request_of(f, job, NULL), 7 * GIB);
    change(f, prior_quantile_permille, 0);
    assert_int_equal(request_of(f, job, &source), -1);
    assert_int_equal(source, SOURCE_UNKNOWN);
    change(f, prior_quantile_permille, 850);
    const struct record *first = placed(f, job);
    assert_int_equal(first->placed.reserved_bytes, LIKELY);
    assert_int_equal(first->placed.reservation_source, SOURCE_PRIOR);
    exclusive.submitted.exclusive = true;
    assert_int_equal(request_of(f, submit_record(f, exclusive), NULL), -1);
    assert_int_equal(request_of(f, submit_of(f, "", 3 * GIB), &source), 3 * GIB);
    assert_int_equal(source, SOURCE_DECLARED);
}

/* A job that is larger than every GPU could not run here: it does not count. */
CORE_TEST(test_gpus_bound_the_distribution)
{
    share_by_guess(f, SHARE_MPS, 16 * GIB);
    uint64_t job = submit_of(f, "", -1);
    assert_int_equal(request_of(f, job, NULL), 11 * GIB);
    share_by_guess(f, SHARE_MPS, 80 * GIB);
    assert_int_equal(request_of(f, job, NULL), 26 * GIB);
    share_by_guess(f, SHARE_MPS, 10 * GIB + GIB / 2);
    change(f, prior_quantile_permille, 999);
    assert_int_equal(request_of(f, job, NULL), 10 * GIB + GIB / 2); /* the bin reaches beyond the GPU */
    assert_non_null(placed(f, job));
}

/* The next job finds this one's memory observed and settled. */
PRIOR_TEST(test_nobody_follows_before_the_memory_has_settled)
{
    uint64_t job = submit_of(f, "new", -1);
    assert_non_null(placed(f, job));
    uint64_t next = submit(f, 1, 2 * GIB);
    assert_null(placed(f, next));
    assert_reason(f, next, "job 1 on GPU 0 may not have taken all its memory yet (at most 5:00 more)");
    memory_observed(f, job, 0, 6 * GIB);
    f->now_ns += SECONDS(29);
    assert_null(placed(f, next));
    f->now_ns += SECONDS(2);
    assert_non_null(placed(f, next));
}

PRIOR_TEST(test_a_guess_may_use_what_nobody_has_reserved)
{
    submit(f, 1, 12 * GIB);
    assert_non_null(placed(f, 1));
    submit_of(f, "new", -1);
    const struct record *second = placed(f, 2);
    assert_int_equal(second->placed.reserved_bytes, LIKELY);
    assert_int_equal(second->placed.fence_bytes, 28 * GIB);
    settle(f, 2, 6 * GIB);
    submit_of(f, "newer", -1);
    assert_null(placed(f, 3)); /* 6 GiB are free */
    assert_reason(f, 3, "6.0 GiB free at most, on GPU 0; 22.0 GiB needed");
    f->now_ns += SECONDS(300);
    decide(f); /* shrunk to 7.5 GiB */
    assert_reason(f, 3, "20.5 GiB free at most, on GPU 0; 22.0 GiB needed");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_int_equal(placed(f, 3)->placed.fence_bytes, 65 * GIB / 2);
}

/* The request and its headroom are the guess's own, even of all that was free; what nearly no job needs is not. */
PRIOR_TEST(test_the_fence_has_headroom_and_an_end)
{
    submit(f, 1, 18 * GIB);
    assert_non_null(placed(f, 1));
    submit_of(f, "new", -1);
    assert_int_equal(placed(f, 2)->placed.fence_bytes, fence_around(LIKELY));
    exits(f, 1, EXIT_COMPLETED, -1);
    exits(f, 2, EXIT_FAILED, -1);
    run_workloads(f, 0, 200, 2 * GIB);
    submit_of(f, "", -1);
    assert_int_equal(placed(f, f->last_job)->placed.fence_bytes, fence_around(32 * GIB));
}

CORE_TEST(test_without_a_fence_more_must_be_free)
{
    share_by_guess(f, SHARE_TIME_SLICE, TOTAL);
    run_workloads(f, 0, 200, 2 * GIB);
    uint64_t there = submit_of(f, "", 9 * GIB);
    assert_non_null(placed(f, there));
    uint64_t job = submit_of(f, "new", -1);
    assert_null(placed(f, job));
    assert_reason(f, job, "31.0 GiB free at most, on GPU 0; 32.0 GiB needed");
    exits(f, there, EXIT_COMPLETED, -1);
    there = submit_of(f, "", 8 * GIB);
    assert_non_null(placed(f, job));
    assert_int_equal(f->decisions.items[0].placed.reserved_bytes, 8 * GIB);
    assert_int_equal(f->decisions.items[0].placed.fence_bytes, -1);
    assert_int_equal(core_find_job(f->core, there)->state, JOB_QUEUED); /* until that has settled */
    settle(f, job, 6 * GIB);
    assert_non_null(placed(f, there));
    exits(f, job, EXIT_COMPLETED, -1);
    job = submit_of(f, "newer", -1);
    assert_non_null(placed(f, job)); /* beside 8 GiB */
}

/* One end at the fence teaches: it is not charged, and the job and its like have a figure of their own. */
PRIOR_TEST(test_an_end_at_the_fence_teaches)
{
    struct record out = {.type = RECORD_EXITED};
    uint32_t source;

    submit(f, 1, 12 * GIB);
    assert_non_null(placed(f, 1));
    uint64_t job = submit_of(f, "new", -1);
    assert_non_null(placed(f, job));
    settle(f, job, 27 * GIB);
    f->now_ns += SECONDS(600);
    out.job = job;
    out.exited = (struct record_exited){EXIT_GPU_OOM, 1, 2 * GIB, -1, 27 * GIB, RECORD_NO_GPU};
    apply(f, out);
    assert_null(placed(f, job)); /* 28 GiB are free */
    assert_int_equal(f->decisions.items[0].type, RECORD_REQUEUED);
    assert_int_equal(f->decisions.items[0].requeued.crashes, 0);
    assert_true(f->decisions.items[0].requeued.unfenced);
    assert_true(request_of(f, job, &source) >= 29 * GIB);
    assert_int_not_equal(source, SOURCE_PRIOR);
    job = submit_of(f, "new", -1);
    assert_true(request_of(f, job, &source) >= 29 * GIB);
    assert_int_equal(source, SOURCE_LEARNED);
}

/* Each workload counts once, however often it is repeated. */
PRIOR_TEST(test_the_server_s_own_workloads_move_it)
{
    for (int i = 0; i < 100; i++)
        runs_once(f, "always", 38 * GIB);
    ask_for(f, "", LIKELY);
    run_workloads(f, 0, 60, 2 * GIB);
    ask_for(f, "", 16 * GIB);
    run_workloads(f, 60, 1000, 3 * GIB);
    ask_for(f, "", 3 * GIB);
    assert_true(prior_is_sane(user_find(f->core, 0)->own->parts, PRIOR_BINS)); /* the old fade: the sum is bounded */
    assert_true(user_find(f->core, 0)->own->parts[16] > 0 && user_find(f->core, 0)->own->parts[16] < 1000);
    run_workloads(f, 1060, 120, 30 * GIB);
    ask_for(f, "", 30 * GIB);
}

/* The room (21 GiB) is on one GPU; a workload that completes on the other shows what is enough for who waits. */
static int64_t starts_with_less(struct fixture *f, const char *completes, const char *waits)
{
    apply(f, (struct record){.type = RECORD_GPU_BACK, .gpu = {.gpu = 1, .total_bytes = TOTAL, .share = SHARE_MPS}});
    sample(f, 1, 0, 0, 0);
    submit(f, 1, 19 * GIB);
    submit(f, 1, 36 * GIB);
    uint64_t other = submit(f, 1, 20 * GIB);
    uint64_t last = submit_of(f, completes, 2 * GIB);
    assert_non_null(placed(f, last));
    memory_observed(f, last, 1, 2 * GIB);
    exits(f, other, EXIT_FAILED, -1);
    uint64_t job = submit_of(f, waits, -1);
    assert_null(placed(f, job));
    assert_reason(f, job, "21.0 GiB free at most, on GPU 0; 22.0 GiB needed");
    exits(f, last, EXIT_COMPLETED, -1);
    return starts_with(f, job);
}

PRIOR_TEST(test_a_smaller_request_starts_who_waits)
{
    run_workloads(f, 0, 9, 2 * GIB);
    assert_int_equal(starts_with_less(f, "", "new"), 20 * GIB);
}

/* Nothing larger is idle, and it may need less. */
PRIOR_TEST(test_an_idle_gpu_takes_any_guess)
{
    apply(f, (struct record){.type = RECORD_GPU_BACK, .gpu = {.total_bytes = 16 * GIB, .share = SHARE_MPS}});
    uint64_t job = submit_of(f, "new", -1);
    assert_int_equal(request_of(f, job, NULL), LIKELY); /* the larger ones may come back */
    assert_int_equal(starts_with(f, job), 16 * GIB);
}

PRIOR_TEST(test_a_user_s_limit_is_kept)
{
    change(f, per_user.max_memory_bytes, 12 * GIB);
    uint64_t job = submit_of(f, "", -1);
    assert_int_equal(request_of(f, job, NULL), 12 * GIB);
    assert_int_equal(placed(f, job)->placed.fence_bytes, fence_around(12 * GIB));
    submit_of(f, "", -1);
    assert_null(placed(f, 2));
    assert_reason(
        f, 2,
        "12.0 GiB of GPU memory needed, its user's jobs have 12.0 GiB of at most 12.0 GiB (max_gpu_memory_per_user)");
    assert_never(f, core_find_job(f->core, 2)->wants, NULL);
    change(f, prior_quantile_permille, 0);
    assert_never(f, core_find_job(f->core, 2)->wants,
                 "40.0 GiB of GPU memory needed (whole GPUs: it requests none), a user's limit is 12.0 GiB "
                 "(max_gpu_memory_per_user)");
}

/* So many workloads of another user, of which each run takes so long. */
static void another_user_runs(struct fixture *f, uint32_t uid, int64_t seconds, int count, int64_t bytes)
{
    for (int i = 0; i < count; i++) {
        struct record record = wants(1, 30 * GIB);

        record.submitted.uid = uid;
        uint64_t job = submit_record(f, record);
        assert_non_null(placed(f, job));
        memory_observed(f, job, 0, bytes);
        f->now_ns += SECONDS(seconds);
        exits(f, job, EXIT_COMPLETED, -1);
    }
}

/* By a quarter at most, if two are of one mind. Runs under a minute are not told. */
PRIOR_TEST(test_other_users_move_it_a_little)
{
    another_user_runs(f, 1, 59, 300, 36 * GIB);
    another_user_runs(f, 2, 59, 300, 36 * GIB);
    ask_for(f, "new", LIKELY);
    another_user_runs(f, 1, 60, 300, 36 * GIB);
    ask_for(f, "new", LIKELY);
    another_user_runs(f, 2, 60, 300, 36 * GIB);
    ask_for(f, "new", LIKELY + LIKELY / 4);
    assert_int_equal(user_find(f->core, 0)->careful_bytes, TOTAL); /* theirs is less: that lowers nothing */
}

/* It may need more: the next run of it gets a quarter more, and the guess is as before. */
PRIOR_TEST(test_a_run_that_met_its_fence)
{
    uint32_t source;

    submit(f, 1, 18 * GIB);
    assert_non_null(placed(f, 1));
    uint64_t job = submit_of(f, "new", -1);
    int64_t fence = placed(f, job)->placed.fence_bytes;
    int64_t peak = fence - FENCE_HEADROOM_BYTES / 2;
    memory_observed(f, job, 0, peak);
    exits(f, job, EXIT_COMPLETED, -1);
    job = submit_of(f, "new", -1);
    assert_int_equal(request_of(f, job, &source), peak + peak / 4);
    assert_int_equal(source, SOURCE_LEARNED);
    assert_null(user_find(f->core, 0)->own);
}

static void run_of_program(struct fixture *f, int first, int count, int64_t bytes)
{
    run_some(f, "p:", first, count, bytes);
}

/* Half of them count as twice their memory; the node's distribution as one of them. */
PRIOR_TEST(test_a_program_s_own_workloads_count_more)
{
    ask_for(f, "p:new", LIKELY);
    run_of_program(f, 0, 2, 3 * GIB);
    run_of_program(f, 0, 2, 3 * GIB); /* each counts once, and two are too few */
    ask_for(f, "p:new", user_find(f->core, 0)->likely_bytes);
    run_of_program(f, 2, 4, 3 * GIB);
    ask_for(f, "p:new", 6 * GIB);
    uint64_t job = submit_of(f, "p:new", -1);
    assert_int_equal(program_careful_bytes(core_find_job(f->core, job)), user_find(f->core, 0)->careful_bytes);
    uint64_t other = submit_of(f, "q:new", -1); /* of another program; so is one whose name says none */
    assert_int_equal(request_of(f, other, NULL), LIKELY);
    assert_int_equal(request_of(f, submit_of(f, "p", -1), NULL), LIKELY);
    assert_int_equal(program_careful_bytes(core_find_job(f->core, other)), user_find(f->core, 0)->careful_bytes);
    assert_int_equal(starts_with(f, job), 6 * GIB);
}

PRIOR_TEST(test_a_program_whose_workloads_differ)
{
    CLEANUP(record_list_release) struct record_list taken = {0};

    run_of_program(f, 0, 4, 3 * GIB);
    run_of_program(f, 4, 1, 4 * GIB);
    ask_for(f, "p:new", user_find(f->core, 0)->likely_bytes);
    assert_int_equal(program_careful_bytes(core_find_job(f->core, submit_of(f, "p:new", -1))),
                     user_find(f->core, 0)->careful_bytes);
    core_free(restored(f, &taken)); /* a snapshot holds programs */
}

/* What a program's workloads were found to need may be more than nearly all others need. */
PRIOR_TEST(test_a_program_of_large_workloads)
{
    run_of_program(f, 0, 4, 30 * GIB);
    ask_for(f, "p:new", TOTAL);
    assert_int_equal(program_careful_bytes(core_find_job(f->core, submit_of(f, "p:new", -1))), TOTAL);
}

PRIOR_TEST(test_a_known_program_starts_who_waits)
{
    run_of_program(f, 2, 2, 2 * GIB);
    assert_true(starts_with_less(f, "p:1", "p:new") < 21 * GIB);
}

PRIOR_TEST(test_a_forgotten_workload_s_program)
{
    run_of_program(f, 0, 1, 30 * GIB);
    run_of_program(f, 1, 3, 3 * GIB);
    for (int i = 0; i < LEARN_MOST_PROFILES - 4; i++) {
        char workload[16];
        snprintf(workload, sizeof workload, "n%d", i);
        apply(f, (struct record){.type = RECORD_CANCELLED, .job = submit_of(f, workload, GIB)});
    }
    ask_for(f, "p:new", 6 * GIB); /* "p:0" is forgotten for it, "p:1" is not yet */
}

PRIOR_TEST(test_snapshots_hold_it)
{
    CLEANUP(record_list_release) struct record_list taken = {0};
    struct core *core, *broken = core_new();

    run_workloads(f, 0, 90, 2 * GIB);
    core = restored(f, &taken);
    assert_int_equal(user_find(core, 0)->likely_bytes, user_find(f->core, 0)->likely_bytes);
    /* Those of earlier carmas: the first who submits a workload has its history. The eldest begins with the published
     * distribution; later ones had that of all runs, here each below the published median. */
    struct record state_core = taken.items[1];
    memset(state_core.state_core.prior, 0, sizeof state_core.state_core.prior);
    state_core.state_core.prior[1] = 1000;
    for (uint32_t bins = 0; bins <= PRIOR_BINS; bins += PRIOR_BINS) {
        CLEANUP(drop_core) struct core *old = core_new();
        state_core.state_core.prior_count = bins;
        assert_int_equal(core_apply(old, &taken.items[0], NULL), 0);
        assert_int_equal(core_apply(old, &state_core, NULL), 0);
        for (size_t i = 2; i < taken.count; i++) {
            struct record record = taken.items[i];
            if (record.type == RECORD_STATE_PROFILE)
                record.state_profile.uid = USER_UNKNOWN;
            if (record.type != RECORD_STATE_PRIOR)
                assert_int_equal(core_apply(old, &record, NULL), 0);
        }
        learn_profile(old, user_of(old, 7), "n0");
        assert_true(bins ? user_find(old, 7)->likely_bytes < LIKELY : user_find(old, 7)->likely_bytes == LIKELY);
        assert_int_equal(learn_find(old, 7, "n0")->runs, 1);
        assert_null(learn_find(old, USER_UNKNOWN, "n0"));
    }
    /* One that nobody took. */
    assert_int_equal(core_apply(broken, &taken.items[0], NULL), 0);
    state_core.state_core.prior_count = PRIOR_BINS - 1;
    assert_int_not_equal(core_apply(broken, &state_core, NULL), 0);
    state_core.state_core.prior_count = PRIOR_BINS;
    memset(state_core.state_core.prior, 0, sizeof state_core.state_core.prior);
    assert_int_not_equal(core_apply(broken, &state_core, NULL), 0);
    core_free(core);
    core_free(broken);
}
