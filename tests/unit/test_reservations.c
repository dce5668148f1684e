/* A reservation follows the knowledge of its job: shrunk to the observed use, raised when the job ran out of memory. */
#include "placement_fixture.h"

CORE_TEST(test_reservations_are_trimmed_to_what_was_seen)
{
    use_carma_on(f, 1);
    submit_workload(f, "", 1, 39 * GIB, 100);
    submit_workload(f, "", 1, 25 * GIB, 100);
    decide(f);
    memory_observed(f, 1, 0, 10 * GIB);
    f->now_ns += SECONDS(60) - 1;
    assert_nothing_decided(f);
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + 1);
    job_event(f, RECORD_STARTED, 1);
    assert_true(commanded(f, COMMAND_SUSPEND, 1, 0)); /* what it then needs is not seen, nor right after it goes on */
    f->now_ns += SECONDS(60);
    assert_null(decided(f, RECORD_SHRUNK, 1));
    assert_true(commanded(f, COMMAND_RESUME, 1, 0));
    f->now_ns += SECONDS(60) - 1;
    assert_null(decided(f, RECORD_SHRUNK, 1));
    f->now_ns += 1;
    decide(f);
    assert_int_equal(decision(f, RECORD_SHRUNK)->shrunk.reserved_bytes, 11 * GIB);
    assert_string_equal(placed_on(f, 2), "0");
}

/* A reservation says where it is from when it is made: nothing has to be guessed from figures that differ. */
CORE_TEST(test_reservations_say_where_they_are_from)
{
    struct record record = wants(1, 20 * GIB);

    use_carma_on(f, 1);
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
    assert_int_equal(decision(f, RECORD_PLACED)->placed.reserved_bytes, 22 * GIB); /* twice what it had */
}

/* A quarter more than the observed memory may be more than the GPU has. An exclusive job gives nothing back. */
CARMA_TEST(test_a_reservation_is_never_larger_than_the_gpu)
{
    struct record exclusive = wants(1, -1);

    exclusive.submitted.exclusive = true;
    submit_workload(f, "w", 1, -1, 100);
    submit_record(f, exclusive);
    decide(f);
    memory_observed(f, 1, 0, 35 * GIB);
    memory_observed(f, 2, 1, 8 * GIB);
    f->now_ns += SECONDS(60);
    decide(f);
    assert_int_equal(f->decisions.count, 1);
    assert_int_equal(decision(f, RECORD_SHRUNK)->shrunk.reserved_bytes, TOTAL);
}

CORE_TEST(test_a_whole_gpu_is_given_back_once_the_need_is_seen)
{
    use_carma_on(f, 1);
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

CARMA_TEST(test_needs_more_than_any_gpu)
{
    submit_workload(f, "w", 1, 20 * GIB, 100);
    submit_workload(f, "", 1, GIB, 100);
    decide(f);
    memory_observed(f, 1, 0, 38 * GIB);
    exits(f, 1, EXIT_GPU_OOM, 2 * GIB + 1);
    decide(f);
    assert_non_null(decision(f, RECORD_GAVE_UP));
    /* of the same kind: gets a whole GPU to try */
    assert_int_equal(starts_with(f, submit_workload(f, "w", 1, 20 * GIB, 100)), TOTAL);
}

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
    assert_goes_to(f, 5, "0");
    memory_observed(f, 5, 0, 12 * GIB);
    exits(f, 5, EXIT_GPU_OOM, requested);
    decide(f);
}

CORE_TEST(test_informed_retry_books_what_is_free_beyond_the_message)
{
    crash_beside(f, OOM_RETRY_INFORMED, 3 * GIB);
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reserved_bytes, 19 * GIB);
    assert_string_equal(placed_on(f, 5), "0"); /* fits beside the first again, with all that is free there */
    memory_observed(f, 5, 0, 15 * GIB);
    exits(f, 5, EXIT_GPU_OOM, GIB);
    assert_waits(f, 5); /* the second crash goes to an idle GPU */
    assert_reason(f, 5, "1 idle GPU needed, 0 are idle");
    submit_workload(f, "", 1, GIB, 100);
    assert_starts(f, 6); /* others are placed around it */
}

CORE_TEST(test_retry_by_steps)
{
    crash_beside(f, OOM_RETRY_STEP, 3 * GIB); /* it could have had 40 - 20 */
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reserved_bytes, 25 * GIB);
    assert_string_equal(placed_on(f, 5), "");
}

CORE_TEST(test_informed_retry_without_a_figure_takes_a_step)
{
    crash_beside(f, OOM_RETRY_INFORMED, -1);
    assert_int_equal(decision(f, RECORD_REQUEUED)->requeued.reserved_bytes, 25 * GIB);
}
