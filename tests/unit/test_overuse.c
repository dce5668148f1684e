/* Jobs that use more than was reserved: reservations grow, who runs out is a victim (src/core/need/overuse.h). */
#include "core_fixture.h"
#include "core/need/need.h"
#include "core/waiting/order.h"
#include "core/need/overuse.h"
#include "core/quantum.h"

#define ADA 1000

/* All share GPU 0 by the policy carma: it is the only one. */
static void use_one_gpu(struct fixture *f)
{
    use_policy(f, "carma");
    change(f, memory_view, MEMORY_RESERVE);
    change(f, margin_bytes, 0);
    change(f, oom_retry, OOM_RETRY_INFORMED);
    keep_gpus(f, 1);
}

#define OVERUSE_TEST(name) CORE_TEST_AFTER(use_one_gpu, name)

static uint64_t running(struct fixture *f, int64_t request, int64_t seen)
{
    uint64_t job = submit(f, 1, request);

    assert_goes_to(f, job, "0");
    job_event(f, RECORD_STARTED, job);
    if (seen)
        memory_observed(f, job, 0, seen);
    return job;
}

static const struct record *runs_out(struct fixture *f, uint64_t job, int64_t requested)
{
    exits(f, job, EXIT_GPU_OOM, requested);
    return decided(f, RECORD_REQUEUED, job);
}

OVERUSE_TEST(test_a_reservation_grows_with_what_is_observed)
{
    change(f, per_user.max_memory_bytes, 30 * GIB);
    uint64_t job = running(f, 2 * GIB, 2 * GIB + QUANTUM_MEMORY_BYTES - 1);
    assert_null(decided(f, RECORD_GROWN, job)); /* it may be rounding */
    memory_observed(f, job, 0, 25 * GIB);
    const struct record *grown = decided(f, RECORD_GROWN, job);
    assert_non_null(grown);
    assert_int_equal(grown->grown.reserved_bytes, 25 * GIB);
    assert_int_equal(grown->grown.reservation_source, SOURCE_OBSERVED);
    assert_int_equal(overuse_bytes(core_find_job(f->core, job)), 23 * GIB);
    assert_null(decided(f, RECORD_GROWN, job)); /* once */
    uint64_t other = submit(f, 1, 8 * GIB);     /* the user's limit counts the use, not the request */
    decide(f);
    assert_int_equal(core_reason(f->core, other, f->now_ns).code, REASON_USER_MEMORY);
    memory_observed(f, job, 0, 50 * GIB); /* as a driver may say that counts something twice */
    assert_int_equal(decided(f, RECORD_GROWN, job)->grown.reserved_bytes, TOTAL);
}

/* A reservation that carma shrank may grow again to the request: that is not a fault of the job's. */
OVERUSE_TEST(test_a_job_within_its_request_is_not_over)
{
    struct record record = wants(1, 20 * GIB);
    uint64_t job = 1;

    change(f, shrink_after_ns, SECONDS(60));
    record.submitted.requeue = true;
    submit_record(f, record);
    decide(f);
    memory_observed(f, job, 0, 10 * GIB);
    f->now_ns += SECONDS(60);
    assert_int_equal(decided(f, RECORD_SHRUNK, job)->shrunk.reserved_bytes, 11 * GIB);
    exits(f, job, EXIT_TIMEOUT, -1);
    assert_int_equal(decided(f, RECORD_PLACED, job)->placed.reserved_bytes, 11 * GIB);
    memory_observed(f, job, 0, 20 * GIB);
    assert_int_equal(decided(f, RECORD_GROWN, job)->grown.reserved_bytes, 20 * GIB);
    assert_int_equal(overuse_bytes(core_find_job(f->core, job)), 0);
}

OVERUSE_TEST(test_the_victim_is_not_charged_and_the_overuser_goes_alone)
{
    uint64_t overuser = running(f, 2 * GIB, 4 * GIB);
    uint64_t worse = running(f, 2 * GIB, 0);
    uint64_t victim = running(f, 30 * GIB, 24 * GIB);
    uint64_t waiting = submit(f, 1, 30 * GIB);
    memory_observed(f, worse, 0, 12 * GIB);
    const struct record *requeued = runs_out(f, victim, 4 * GIB);
    assert_requeued(requeued, true, 0, 30 * GIB);
    assert_int_equal(requeued->requeued.overuser, worse); /* the one farthest beyond, not the first */
    assert_int_equal(requeued->requeued.reservation_source, SOURCE_DECLARED);
    assert_ptr_equal(order_head(f->core, f->now_ns), core_find_job(f->core, victim)); /* before the waiting jobs */
    assert_false(job_wants_idle(f->core, core_find_job(f->core, victim)));
    assert_int_equal(core_find_job(f->core, worse)->victims, 1);
    assert_int_equal(core_find_job(f->core, overuser)->victims, 0);
    exits(f, overuser, EXIT_COMPLETED, -1);
    requeued = runs_out(f, worse, GIB); /* it is its own doing: nobody else is beyond */
    assert_requeued(requeued, true, 1, 24 * GIB);
    assert_int_equal(requeued->requeued.overuser, 0);
    assert_string_equal(placed_on(f, victim), "0");
    assert_true(job_wants_idle(f->core, core_find_job(f->core, worse)));
    assert_int_equal(core_find_job(f->core, waiting)->state, JOB_QUEUED);
}

/* Its end is seen after that of the job which took its memory; long after, nobody is the cause. */
CORE_TEST(test_who_has_left_is_still_the_cause)
{
    for (int late = 0; late < 2; late++) {
        use_one_gpu(f);
        uint64_t overuser = running(f, 2 * GIB, 12 * GIB);
        uint64_t victim = running(f, 26 * GIB, 24 * GIB);
        exits(f, overuser, EXIT_COMPLETED, -1);
        f->now_ns += SECONDS(late ? 61 : 60);
        const struct record *requeued = runs_out(f, victim, 2 * GIB);
        assert_int_equal(requeued->requeued.overuser, late ? 0 : overuser);
        assert_int_equal(requeued->requeued.crashes, late);
        exits(f, victim, EXIT_COMPLETED, -1);
    }
}

static void gpu_is_back(struct fixture *f, uint32_t gpu)
{
    apply(f, (struct record){.type = RECORD_GPU_BACK, .gpu = {.gpu = gpu, .total_bytes = TOTAL}});
    sample(f, gpu, 0, 0, 0);
}

static void strays(struct fixture *f, uint64_t job, uint32_t gpu, int64_t bytes)
{
    apply(f, (struct record){.type = RECORD_STRAYED, .job = job, .strayed = {gpu, bytes}});
}

/* A job was granted nothing on a GPU that it was not given: it is farther beyond than one that was granted a part. */
OVERUSE_TEST(test_a_stray_is_the_culprit)
{
    uint64_t beside = running(f, 2 * GIB, 4 * GIB);
    uint64_t victim = running(f, 24 * GIB, 22 * GIB);
    gpu_is_back(f, 1);
    uint64_t stray = submit(f, 1, 36 * GIB);
    assert_goes_to(f, stray, "1");
    memory_observed(f, stray, 1, 36 * GIB);
    strays(f, stray, 2, 30 * GIB); /* not here */
    const struct record *requeued = runs_out(f, victim, GIB);
    assert_int_equal(requeued->requeued.overuser, beside);
    assert_string_equal(placed_on(f, victim), "0");
    memory_observed(f, victim, 0, 22 * GIB);
    strays(f, stray, 0, 5 * GIB);
    strays(f, stray, 0, GIB); /* the most that it held */
    requeued = runs_out(f, victim, GIB);
    assert_int_equal(requeued->requeued.overuser, stray);
    assert_int_equal(requeued->requeued.crashes, 0);
    assert_int_equal(core_find_job(f->core, stray)->victims, 1);
    assert_true(core_find_job(f->core, stray)->user->memory_bytes >= 35 * (uint64_t)GIB);
}

/* Nobody waits, so the core was not told the changes since: a retry goes by how the GPUs are now. */
CORE_TEST(test_a_crash_asks_for_samples)
{
    struct record seen = {
        .type = RECORD_SAMPLE, .at_ns = f->now_ns, .sample = {0, 30 * GIB, 30 * GIB, 0, -1, -1, false}};

    use_one_gpu(f);
    uint64_t job = running(f, 24 * GIB, 22 * GIB);
    assert_false(core_sample_is_due(f->core, &seen));
    exits(f, job, EXIT_GPU_OOM, GIB);
    assert_true(core_sample_is_due(f->core, &seen));
    apply(f, seen);
    assert_waits(f, job);
    assert_int_equal(core_find_job(f->core, job)->state, JOB_QUEUED);
}

/* An earlier carma did not say where. */
OVERUSE_TEST(test_strays_of_an_earlier_carma_are_charged)
{
    gpu_is_back(f, 1);
    uint64_t victim = running(f, 24 * GIB, 22 * GIB);
    uint64_t stray = submit(f, 1, 36 * GIB);
    decide(f);
    strays(f, stray, RECORD_NO_GPU, 5 * GIB);
    assert_int_equal(core_find_job(f->core, stray)->run->stray_bytes, 5 * GIB);
    strays(f, stray, 0, 3 * GIB); /* it may be among those */
    assert_int_equal(core_find_job(f->core, stray)->run->stray_bytes, 5 * GIB);
    strays(f, stray, 0, 6 * GIB);
    assert_int_equal(core_find_job(f->core, stray)->run->stray_bytes, 6 * GIB);
    assert_int_equal(runs_out(f, victim, GIB)->requeued.overuser, stray);
}

/* Runs to its end, and returns its reservation. */
static int64_t run_of(struct fixture *f, const char *workload, int64_t request, int64_t seen)
{
    uint64_t job = submit_of(f, workload, request);
    const struct record *placed = decided(f, RECORD_PLACED, job);
    int64_t reserved = placed->placed.reserved_bytes;

    assert_int_equal(placed->placed.reservation_source, reserved == request ? SOURCE_DECLARED : SOURCE_LEARNED);
    memory_observed(f, job, 0, seen);
    assert_int_equal(overuse_bytes(core_find_job(f->core, job)),
                     seen - reserved >= QUANTUM_MEMORY_BYTES ? seen - reserved : 0);
    exits(f, job, EXIT_COMPLETED, -1);
    return reserved;
}

OVERUSE_TEST(test_a_request_that_was_too_small_is_remembered)
{
    change(f, learn, true);
    assert_int_equal(run_of(f, "w", 20 * GIB, 18 * GIB), 20 * GIB); /* an honest one */
    assert_int_equal(run_of(f, "w", 10 * GIB, 15 * GIB), 10 * GIB); /* it need not be the same any more: at its word */
    assert_int_equal(run_of(f, "other", 10 * GIB, 10 * GIB + QUANTUM_MEMORY_BYTES - 1), 10 * GIB); /* rounding */
    assert_int_equal(run_of(f, "other", 10 * GIB, 10 * GIB), 10 * GIB);
    assert_int_equal(run_of(f, "w", 10 * GIB, 14 * GIB), 15 * GIB);
    assert_int_equal(run_of(f, "w", 10 * GIB, 9 * GIB), 14 * GIB);
    assert_int_equal(run_of(f, "w", 10 * GIB, 30 * GIB), 10 * GIB); /* the last one kept its word */
    assert_int_equal(run_of(f, "w", 35 * GIB, 36 * GIB), 35 * GIB);
    change(f, per_user.max_memory_bytes, 12 * GIB);
    assert_int_equal(run_of(f, "w", 10 * GIB, 36 * GIB), 12 * GIB); /* more, it would wait for for ever */
    change(f, learn, false);
    assert_int_equal(run_of(f, "w", 10 * GIB, GIB), 10 * GIB);
}

OVERUSE_TEST(test_who_is_over_itself_is_no_victim)
{
    running(f, 2 * GIB, 12 * GIB);
    uint64_t job = running(f, 24 * GIB, 22 * GIB);
    const struct record *requeued = runs_out(f, job, 4 * GIB); /* 26 of 24 */
    assert_int_equal(requeued->requeued.overuser, 0);
    assert_int_equal(requeued->requeued.crashes, 1);
    job_event(f, RECORD_CANCELLED, job);
    job = running(f, 24 * GIB, 22 * GIB);
    change(f, memory_view, MEMORY_MONITOR); /* which promises nothing */
    assert_int_equal(runs_out(f, job, GIB)->requeued.overuser, 0);
}

/* By a job that loads and says that it could not have `asked` bytes, with `used` observed. */
static uint64_t blamed(struct fixture *f, int64_t used, int64_t asked)
{
    struct record end = {.type = RECORD_EXITED, .job = running(f, 30 * GIB, GIB)};

    end.exited = (struct record_exited){.cause = EXIT_GPU_OOM, .requested_bytes = asked, .used_bytes = used};
    apply(f, end);
    uint64_t overuser = decided(f, RECORD_REQUEUED, end.job)->requeued.overuser;
    job_event(f, RECORD_CANCELLED, end.job);
    if (core_find_job(f->core, end.job)) /* it runs again */
        exits(f, end.job, EXIT_FAILED, -1);
    return overuser;
}

OVERUSE_TEST(test_a_message_alone_blames_nobody)
{
    uint64_t overuser = running(f, 2 * GIB, 4 * GIB);

    assert_int_equal(blamed(f, 4 * GIB, 2 * GIB), 0);
    assert_int_equal(blamed(f, 10 * GIB, 29 * GIB), 0); /* which would have fitted */
    assert_int_equal(blamed(f, 12 * GIB, 29 * GIB), overuser);
    assert_int_equal(blamed(f, 30 * GIB, -1), overuser);
}

/* A job that prints "out of memory" beside such a neighbour would otherwise be started again for ever. */
CORE_TEST(test_victims_are_bounded)
{
    uint32_t most = core_configuration(f->core)->max_retries;
    const struct record *requeued;

    use_one_gpu(f);
    running(f, 2 * GIB, 8 * GIB);
    uint64_t victim = running(f, 30 * GIB, 24 * GIB);
    for (uint32_t i = 0; i <= most; i++) {
        requeued = runs_out(f, victim, 4 * GIB);
        assert_int_equal(requeued->requeued.overuser != 0, i < most);
        assert_int_equal(requeued->requeued.crashes, i < most ? 0 : 1);
        if (i < most) {
            assert_string_equal(placed_on(f, victim), "0");
            memory_observed(f, victim, 0, 24 * GIB);
        }
    }
}
