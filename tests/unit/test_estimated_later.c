/* Jobs of unknown need that are estimated after their submission: RECORD_ESTIMATED. */
#include "core_fixture.h"

/* By the guess. */
static uint64_t start(struct fixture *f)
{
    share_by_guess(f, SHARE_MPS, TOTAL);
    uint64_t job = submit_of(f, "new", -1);
    assert_non_null(decided(f, RECORD_PLACED, job));
    return job;
}

static void is_estimated(struct fixture *f, uint64_t job, int64_t bytes)
{
    apply(f, (struct record){.type = RECORD_ESTIMATED, .job = job, .estimated = {bytes, -1}});
}

static bool is_refused(struct fixture *f, uint64_t job, int64_t bytes, int32_t smact)
{
    return core_apply(f->core, &(struct record){.type = RECORD_ESTIMATED, .job = job, .estimated = {bytes, smact}},
                      &trouble) != 0;
}

static void assert_reserved(const struct fixture *f, uint64_t job, int64_t bytes, uint32_t source)
{
    uint32_t from;

    assert_int_equal(core_reservation(f->core, core_find_job(f->core, job), &from), bytes);
    assert_int_equal(from, source);
}

/* It would wait by the guess, and starts by the estimate. */
CORE_TEST(test_a_waiting_job_goes_by_it)
{
    share_by_guess(f, SHARE_MPS, TOTAL);
    assert_non_null(decided(f, RECORD_PLACED, submit_of(f, "other", 30 * GIB)));
    uint64_t job = submit_of(f, "new", -1);
    assert_null(decided(f, RECORD_PLACED, job));
    assert_reserved(f, job, LIKELY, SOURCE_PRIOR);
    is_estimated(f, job, 8 * GIB);
    const struct record *placed = decided(f, RECORD_PLACED, job);
    assert_int_equal(placed->placed.reserved_bytes, 8 * GIB);
    assert_int_equal(placed->placed.reservation_source, SOURCE_ESTIMATED);
    job = submit_of(f, "newer", -1);
    job_event(f, RECORD_HELD, job); /* such a job as well */
    is_estimated(f, job, 7 * GIB);
    assert_reserved(f, job, 7 * GIB, SOURCE_ESTIMATED);
}

/* Others come into the room that the guess kept, without waiting until its memory was seen. */
CORE_TEST(test_it_corrects_the_reservation_of_a_running_job)
{
    uint64_t job = start(f), next;

    next = submit_of(f, "other", 30 * GIB);
    assert_null(decided(f, RECORD_PLACED, next));
    is_estimated(f, job, 8 * GIB);
    const struct record *shrunk = decided(f, RECORD_SHRUNK, job);
    assert_int_equal(shrunk->shrunk.reserved_bytes, 8 * GIB);
    assert_int_equal(shrunk->shrunk.reservation_source, SOURCE_ESTIMATED);
    assert_int_equal(core_gpu(f->core, 0)->resident_count, 2);
    assert_null(decided(f, RECORD_SHRUNK, job));
}

CORE_TEST(test_it_may_exceed_the_guess)
{
    uint64_t job = start(f);

    is_estimated(f, job, 50 * GIB);
    const struct record *grown = decided(f, RECORD_GROWN, job);
    assert_int_equal(grown->grown.reserved_bytes, TOTAL); /* no more than there is */
    assert_int_equal(grown->grown.reservation_source, SOURCE_ESTIMATED);
}

/* What was observed after it had settled says more. */
CORE_TEST(test_an_observed_reservation_stays)
{
    uint64_t job = start(f);

    memory_observed(f, job, 0, 4 * GIB);
    f->now_ns += SECONDS(301);
    assert_int_equal(decided(f, RECORD_SHRUNK, job)->shrunk.reserved_bytes, 5 * GIB);
    is_estimated(f, job, 8 * GIB);
    assert_null(decided(f, RECORD_GROWN, job));
    assert_int_equal(core_find_job(f->core, job)->reserved_bytes, 5 * GIB);
}

/* It never undercuts what was observed; where it was too large, that shrinks the reservation as any other. */
CORE_TEST(test_observation_shrinks_it_later)
{
    uint64_t job = start(f);

    memory_observed(f, job, 0, 10 * GIB); /* from now on it waits to be shrunk */
    is_estimated(f, job, 8 * GIB);
    assert_int_equal(decided(f, RECORD_SHRUNK, job)->shrunk.reserved_bytes, 10 * GIB);
    exits(f, job, EXIT_FAILED, -1);
    job = submit_of(f, "newer", -1);
    assert_non_null(decided(f, RECORD_PLACED, job));
    memory_observed(f, job, 0, 10 * GIB);
    is_estimated(f, job, 20 * GIB);
    assert_int_equal(decided(f, RECORD_SHRUNK, job)->shrunk.reserved_bytes, 20 * GIB);
    f->now_ns += SECONDS(301);
    assert_int_equal(decided(f, RECORD_SHRUNK, job)->shrunk.reserved_bytes, 11 * GIB);
}

CORE_TEST(test_later_runs_of_the_workload_go_by_it)
{
    CLEANUP(record_list_release) struct record_list taken = {0};
    uint32_t source;

    share_by_guess(f, SHARE_MPS, TOTAL);
    uint64_t job = submit_of(f, "new", -1);
    is_estimated(f, job, 8 * GIB);
    uint64_t later = submit_of(f, "new", -1);
    assert_reserved(f, later, 8 * GIB, SOURCE_ESTIMATED);
    assert_reserved(f, submit_of(f, "newer", -1), LIKELY, SOURCE_PRIOR);
    is_estimated(f, later, 9 * GIB); /* its script has changed since */
    assert_reserved(f, later, 9 * GIB, SOURCE_ESTIMATED);
    uint64_t last = submit_of(f, "new", -1);
    CLEANUP(drop_core) struct core *again = restored(f, &taken);
    assert_int_equal(core_reservation(again, core_find_job(again, last), &source),
                     core_reservation(f->core, core_find_job(f->core, last), &source));
    /* Until a run shows more. */
    assert_non_null(decided(f, RECORD_PLACED, job));
    memory_observed(f, job, 0, 6 * GIB);
    exits(f, job, EXIT_COMPLETED, -1);
    core_reservation(f->core, core_find_job(f->core, submit_of(f, "new", -1)), &source);
    assert_int_equal(source, SOURCE_LEARNED);
}

CORE_TEST(test_others_are_not_estimated)
{
    uint64_t job = submit_of(f, "declared", 4 * GIB);

    assert_true(is_refused(f, job, 8 * GIB, -1));
    job = submit_of(f, "new", -1);
    assert_true(is_refused(f, job, 0, -1));
    assert_true(is_refused(f, job, 8 * GIB, 1001));
    is_estimated(f, job, 8 * GIB);
    assert_true(is_refused(f, job, 9 * GIB, -1));
    job = submit_of(f, "newer", -1);
    job_event(f, RECORD_CANCELLED, job);
    assert_true(is_refused(f, job, 8 * GIB, -1));
}
