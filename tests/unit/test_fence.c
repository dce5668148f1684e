/* The memory fence: which job gets which, and what an out-of-memory error at it leads to (src/core/need/fence.h). */
#include "core_fixture.h"
#include "core/need/fence.h"
#include "core/learn/learn.h"

#define FENCE_OF(bytes) ((bytes) + FENCE_HEADROOM_BYTES + (bytes) / FENCE_HEADROOM_PART)

static void use_mps(struct fixture *f)
{
    use_fences(f);
    for (uint32_t g = 0; g < GPUS; g++) {
        struct record record = {.type = RECORD_GPU_BACK, .gpu = {.gpu = g, .total_bytes = TOTAL, .share = SHARE_MPS}};
        apply(f, record);
    }
}

#define FENCE_TEST(name) CORE_TEST_AFTER(use_mps, name)

static uint64_t submit_from(struct fixture *f, uint32_t source, int64_t bytes, const char *workload)
{
    struct record record = wants(1, bytes);

    record.submitted.request_source = source;
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s", workload);
    return submit_record(f, record);
}

/* Of the decisions just made. */
static const struct record *must_decide(struct fixture *f, uint32_t type, uint64_t job)
{
    const struct record *record = was_decided(f, type, job);

    if (!record)
        fail_msg("job %d has no %s", (int)job, record_type_name(type));
    return record;
}

static int64_t fence_of(struct fixture *f, uint64_t job)
{
    decide(f);
    return must_decide(f, RECORD_PLACED, job)->placed.fence_bytes;
}

/* With this much memory observed of it, and this much in use on its GPU at the end. */
static const struct record *runs_out(struct fixture *f, uint64_t job, int64_t seen, int64_t requested, int64_t used)
{
    struct record record = {.type = RECORD_EXITED, .job = job};

    memory_observed(f, job, core_find_job(f->core, job)->placements[0].gpu, seen);
    f->now_ns += SECONDS(600);
    record.exited = (struct record_exited){EXIT_GPU_OOM, 1, requested, -1, used};
    apply(f, record);
    decide(f);
    return must_decide(f, RECORD_REQUEUED, job);
}

FENCE_TEST(test_a_fence_is_the_request_and_some_headroom)
{
    struct record sliced = wants(1, 8 * GIB);

    assert_int_equal(fence_of(f, submit_from(f, SOURCE_DECLARED, 8 * GIB, "")), FENCE_OF(8 * GIB));
    assert_int_equal(fence_of(f, submit_from(f, SOURCE_ESTIMATED, 6 * GIB, "")), FENCE_OF(6 * GIB));
    sliced.submitted.share = SHARE_TIME_SLICE;
    assert_int_equal(fence_of(f, submit_record(f, sliced)), -1);
    assert_int_equal(fence_of(f, submit(f, 1, 38 * GIB)), -1); /* as much as the GPU has */
    change(f, memory_fence, 0);
    exits(f, 1, EXIT_COMPLETED, -1);
    exits(f, 4, EXIT_COMPLETED, -1);
    assert_int_equal(fence_of(f, submit(f, 1, 8 * GIB)), -1);
}

/* A workload's observed use is not a lie of the job's; its user's declaration is taken at its word. */
FENCE_TEST(test_what_is_shown_of_a_job_outlives_it_until_the_next_input)
{
    uint64_t job = submit_from(f, SOURCE_DECLARED, 8 * GIB, "a");
    int64_t fence = fence_of(f, job);

    assert_true(fence > 0 && core_recall_job(f->core, job)->run->fence_bytes == fence);
    exits(f, job, EXIT_COMPLETED, -1);
    assert_true(!core_find_job(f->core, job) && core_recall_job(f->core, job)->run->fence_bytes == fence);
    sample(f, 0, 0, 0, 0);
    assert_null(core_recall_job(f->core, job));
}

FENCE_TEST(test_a_guess_is_at_least_what_was_observed)
{
    submit_from(f, SOURCE_ESTIMATED, 4 * GIB, "w");
    decide(f);
    memory_observed(f, 1, 0, 12 * GIB);
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_true(fence_of(f, submit_from(f, SOURCE_ESTIMATED, 4 * GIB, "w")) >= FENCE_OF(12 * GIB));
    assert_int_equal(fence_of(f, submit_from(f, SOURCE_DECLARED, 4 * GIB, "w")), FENCE_OF(4 * GIB));
    change(f, learn, false); /* requests are as estimated then; fences are not */
    assert_int_equal(fence_of(f, submit_from(f, SOURCE_ESTIMATED, 4 * GIB, "w")), FENCE_OF(12 * GIB));
}

FENCE_TEST(test_a_guess_that_was_wrong_is_not_charged)
{
    uint64_t job = submit_from(f, SOURCE_ESTIMATED, 8 * GIB, "");

    assert_int_equal(fence_of(f, job), FENCE_OF(8 * GIB));
    const struct record *requeued = runs_out(f, job, 8 * GIB, 2 * GIB, 9 * GIB);
    assert_requeued(requeued, true, 0, 16 * GIB);
    assert_true(requeued->requeued.unfenced);
    assert_int_equal(requeued->requeued.reservation_source, SOURCE_RAISED);
    assert_int_equal(must_decide(f, RECORD_PLACED, job)->placed.fence_bytes, -1); /* at once */
    apply(f, (struct record){.type = RECORD_EXITED, .job = job, .exited = {EXIT_GPU_OOM, 1, -1, -1, 3 * GIB}});
    decide(f);
    assert_false(must_decide(f, RECORD_REQUEUED, job)->requeued.retry); /* loading: it was excused once */
    requeued = runs_out(f, job, 36 * GIB, 3 * GIB, 38 * GIB);           /* the GPU itself is full now */
    assert_false(requeued->requeued.unfenced);
    assert_int_equal(requeued->requeued.crashes, 2);
    job = submit_from(f, SOURCE_ESTIMATED, 8 * GIB, "");
    decide(f);
    requeued = runs_out(f, job, 8 * GIB, 2 * GIB, 39 * GIB); /* and so at once */
    assert_false(requeued->requeued.unfenced);
    assert_int_equal(requeued->requeued.crashes, 1);
}

FENCE_TEST(test_a_declared_fence_is_the_jobs_own)
{
    uint64_t job = submit_from(f, SOURCE_DECLARED, 8 * GIB, "");

    decide(f);
    const struct record *requeued = runs_out(f, job, 8 * GIB, 2 * GIB, 9 * GIB);
    assert_requeued(requeued, true, 1, 16 * GIB); /* its message is trusted, though the GPU had room: twice as much */
    assert_false(requeued->requeued.unfenced);
    assert_int_equal(must_decide(f, RECORD_PLACED, job)->placed.fence_bytes, FENCE_OF(16 * GIB));
    requeued = runs_out(f, job, 16 * GIB, 3 * GIB, 17 * GIB); /* alone, and yet no proof that it fits nowhere */
    assert_int_equal(requeued->requeued.crashes, 2);
    assert_int_equal(must_decide(f, RECORD_PLACED, job)->placed.fence_bytes, FENCE_OF(32 * GIB)); /* among others */
    runs_out(f, job, 32 * GIB, 3 * GIB, 33 * GIB);
    assert_int_equal(must_decide(f, RECORD_PLACED, job)->placed.fence_bytes, -1); /* all of a GPU: let it be seen */
}

/* A status of 0 after a message at the fence is not believed; what ran out or met its fence is no measure. */
FENCE_TEST(test_a_limited_run_teaches_at_least)
{
    struct record end = {
        .type = RECORD_EXITED,
        .exited = {.cause = EXIT_COMPLETED, .requested_bytes = -1, .free_bytes = -1, .used_bytes = 9 * GIB}};

    for (uint32_t run = 0; run < 2; run++) {
        end.job = submit_from(f, SOURCE_ESTIMATED, 8 * GIB, "w");
        decide(f);
        memory_observed(f, end.job, 0, 7 * GIB + run * GIB);
        end.exited.evidence = run ? EVIDENCE_OUTPUT | EVIDENCE_LIMITED : EVIDENCE_OUTPUT | EVIDENCE_STEPS;
        apply(f, end);
        assert_int_equal(learn_find(f->core, 0, "w")->runs, 0);
    }
    assert_non_null(decided(f, RECORD_REQUEUED, end.job));
    assert_true(learn_find(f->core, 0, "w")->peak_bytes >= 7 * GIB);
}

/* Whose second retry needs more than is free on any GPU goes where it knows to fit, and waits for no empty one. */
FENCE_TEST(test_a_retry_starts_where_it_fits_and_can_be_fenced)
{
    for (uint32_t g = 0; g < GPUS; g++)
        submit(f, 1, 9 * GIB);
    decide(f);
    uint64_t job = submit_from(f, SOURCE_DECLARED, 8 * GIB, "");
    decide(f);
    runs_out(f, job, 8 * GIB, 4 * GIB, 17 * GIB);
    const struct record *requeued = runs_out(f, job, 16 * GIB, 4 * GIB, 26 * GIB);
    assert_int_equal(requeued->requeued.reserved_bytes, TOTAL - 9 * GIB);
    assert_int_equal(must_decide(f, RECORD_PLACED, job)->placed.shared, true);
    assert_true(core_find_job(f->core, job)->run->fence_bytes >= 0);
}

/* Its earlier wait and its run do not count: it holds up nobody at once. */
FENCE_TEST(test_a_retry_is_starved_by_its_own_wait)
{
    change(f, backfill, 8);
    change(f, starvation_timeout_ns, SECONDS(1800));
    uint64_t job = submit_from(f, SOURCE_DECLARED, 30 * GIB, "");
    decide(f);
    for (uint32_t g = 0; g < 2 * GPUS; g++)
        submit(f, 1, 19 * GIB);
    decide(f);
    f->now_ns += SECONDS(3600);
    sample(f, 0, 39 * GIB, 9 * GIB, 0);
    runs_out(f, job, 30 * GIB, 8 * GIB, 39 * GIB);
    assert_int_equal(core_find_job(f->core, job)->state, JOB_QUEUED);
    assert_null(decided(f, RECORD_RESERVED, job));
    f->now_ns += SECONDS(1801);
    assert_non_null(decided(f, RECORD_RESERVED, job));
}
