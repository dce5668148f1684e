/* Jobs behind a head that cannot be placed: backfill with a bounded delay of the head, and the GPUs reserved for it. */
#include "core/waiting/vacancy.h"
#include "placement_fixture.h"

/* Of no workload. */
static uint64_t waits(struct fixture *f, uint32_t gpus, int64_t bytes)
{
    return submit_workload(f, "", gpus, bytes, 100);
}

/* So many GPUs, on one of which a job runs. */
static void begin(struct fixture *f, uint32_t gpus, int64_t bytes)
{
    use_carma_on(f, gpus);
    waits(f, 1, bytes);
    decide(f);
}

/* By now the head has GPUs reserved. */
static void starve(struct fixture *f)
{
    decide(f);
    f->now_ns += SECONDS(3600);
    decide(f);
}

static bool has_room(const struct vacancy *room, int16_t units, uint8_t band)
{
    struct vacancy needs = vacancy_of_needs(units, band);

    return vacancy_holds(room, &needs);
}

CORE_TEST(test_a_room_is_the_widest_of_its_spaces)
{
    struct vacancy room = vacancy_none;

    vacancy_widen(&room, (struct space){5, 1});
    vacancy_widen(&room, (struct space){3, 3});
    assert_true(has_room(&room, 4, 0) && has_room(&room, 2, 1));
    assert_false(has_room(&room, 5, 0) || has_room(&room, 3, 1) || has_room(&room, 0, 2));
}

CORE_TEST(test_backfill_passes_a_blocked_head)
{
    uint64_t jobs[6];

    use_carma(f);
    waits(f, 1, 10 * GIB);
    decide(f);
    jobs[0] = waits(f, 4, 35 * GIB);
    for (int i = 1; i < 6; i++)
        jobs[i] = waits(f, 1, i == 5 ? GIB : 40 * GIB);
    decide(f);
    for (int i = 1; i < 4; i++)
        assert_string_not_equal(placed_on(f, jobs[i]), "");
    assert_string_equal(placed_on(f, jobs[0]), "");
    assert_string_equal(placed_on(f, jobs[4]), "");
    assert_string_equal(placed_on(f, jobs[5]), "0");
}

/* However many wait before it, alike or not. */
CORE_TEST(test_backfill_reaches_the_last)
{
    begin(f, 1, 30 * GIB);
    for (int i = 0; i < 500; i++)
        submit_workload(f, i % 2 ? "w" : "", 1, 35 * GIB + i / 5 * MIB, 100 + i);
    uint64_t job = waits(f, 1, GIB);
    assert_goes_to(f, job, "0");
    assert_int_equal(f->decisions.count, 1);
}

/* Jobs that are alike are looked at once: the first says for all that they do not fit, and comes before the others. */
CORE_TEST(test_jobs_that_are_alike_keep_their_order)
{
    uint64_t jobs[3], other;

    begin(f, 1, 20 * GIB);
    waits(f, 1, 35 * GIB);
    jobs[0] = submit_workload(f, "w", 1, 25 * GIB, 100);
    other = submit_workload(f, "w", 1, 24 * GIB, 100);
    jobs[1] = submit_workload(f, "w", 1, 25 * GIB, 100);
    jobs[2] = submit_workload(f, "w", 1, 25 * GIB, 100);
    assert_nothing_decided(f);
    assert_ptr_equal(core_find_job(f->core, jobs[2])->autocluster, core_find_job(f->core, jobs[0])->autocluster);
    job_event(f, RECORD_HELD, jobs[0]); /* to come back to its place */
    job_event(f, RECORD_RELEASED, jobs[0]);
    job_event(f, RECORD_CANCELLED, jobs[1]);
    job_event(f, RECORD_CANCELLED, 2);
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, jobs[0], "0");
    exits(f, jobs[0], EXIT_COMPLETED, -1);
    assert_goes_to(f, other, "0");
    assert_string_equal(placed_on(f, jobs[2]), "");
}

CORE_TEST(test_the_head_has_gpus_reserved_in_the_end)
{
    use_carma_on(f, 2);
    waits(f, 1, 10 * GIB);
    waits(f, 1, 5 * GIB);
    decide(f);
    waits(f, 1, 39 * GIB); /* the head: 1 GiB of margin short of any GPU */
    decide(f);
    waits(f, 1, GIB);
    assert_goes_to(f, 4, "1"); /* passes it */
    f->now_ns += SECONDS(3600) - 1;
    decide(f);
    assert_null(decision(f, RECORD_RESERVED));
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + 1);
    f->now_ns += 1;
    assert_decides(f, RECORD_RESERVED);
    assert_int_equal(decision(f, RECORD_RESERVED)->reserved.count, 1);
    assert_int_equal(decision(f, RECORD_RESERVED)->reserved.gpus[0], 1); /* has more free memory */
    waits(f, 1, GIB);
    waits(f, 1, 39 * GIB);
    assert_goes_to(f, 5, "0");
    exits(f, 2, EXIT_COMPLETED, -1);
    exits(f, 4, EXIT_COMPLETED, -1);
    assert_goes_to(f, 3, "1"); /* free, and nobody else's */
    assert_int_equal(core_gpu(f->core, 1)->reserved_for, 0);
}

/* The head has its GPUs reserved; of the others, a starved one is not passed either. */
CORE_TEST(test_later_jobs_do_not_pass_a_starved_one)
{
    begin(f, 1, 30 * GIB);
    waits(f, 1, 35 * GIB); /* the head: a small job fits beside it */
    waits(f, 1, 20 * GIB);
    decide(f);
    f->now_ns += SECONDS(3600) - 1;
    waits(f, 1, GIB);
    assert_goes_to(f, 4, "0");
    f->now_ns += 1;
    waits(f, 1, GIB);
    assert_waits(f, 5);
    job_event(f, RECORD_CANCELLED, 3);
    job_event(f, RECORD_CANCELLED, 2);
    assert_goes_to(f, 5, "0");
}

/* Neither the head, which is retried, nor the starved one may come to its GPU: it would stand idle. */
CORE_TEST(test_a_job_with_gpus_reserved_starts_behind_a_starved_one)
{
    begin(f, 1, 10 * GIB);
    waits(f, 1, 39 * GIB);
    waits(f, 1, 35 * GIB);
    job_event(f, RECORD_HELD, 2);
    starve(f);
    job_event(f, RECORD_RELEASED, 2);
    exits(f, 1, EXIT_MPS_FAULT, -1);
    assert_goes_to(f, 3, "0");
}

/* With the second idle GPU, and not with the first. */
CORE_TEST(test_a_job_of_several_gpus_is_found)
{
    use_carma_on(f, 3);
    for (int i = 0; i < 3; i++)
        waits(f, 1, 30 * GIB);
    decide(f);
    waits(f, 3, 35 * GIB); /* the head */
    uint64_t pair = waits(f, 2, 20 * GIB);
    decide(f);
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_waits(f, pair);
    exits(f, 2, EXIT_COMPLETED, -1);
    assert_goes_to(f, pair, "0,1");
}

/* On a GPU that has not opened since. */
CORE_TEST(test_a_job_that_needs_less_than_was_thought_is_found)
{
    use_carma_on(f, 2);
    waits(f, 1, 20 * GIB);
    uint64_t run = submit_workload(f, "w", 1, 30 * GIB, 100);
    decide(f);
    waits(f, 1, 39 * GIB); /* the head, which takes the GPU that comes free */
    uint64_t waiting = submit_workload(f, "w", 1, 30 * GIB, 100);
    decide(f);
    memory_observed(f, run, 1, 8 * GIB);
    exits(f, run, EXIT_COMPLETED, -1);
    assert_goes_to(f, waiting, "0");
}

/* It may need more than was thought, or GPUs to itself. */
CORE_TEST(test_who_had_gpus_is_alike_nobody)
{
    struct record record = wants(1, 30 * GIB);

    record.submitted.requeue = true;
    use_carma_on(f, 1);
    for (int i = 0; i < 3; i++)
        submit_record(f, record);
    decide(f);
    exits(f, 1, EXIT_TIMEOUT, -1);
    assert_goes_to(f, 2, "0");
    assert_int_equal(core_find_job(f->core, 1)->state, JOB_QUEUED);
    assert_ptr_not_equal(core_find_job(f->core, 1)->autocluster, core_find_job(f->core, 3)->autocluster);
}

CORE_TEST(test_a_starved_twin_of_the_head_is_not_passed)
{
    begin(f, 1, 30 * GIB);
    waits(f, 1, 35 * GIB); /* the head */
    waits(f, 1, GIB);
    waits(f, 1, 35 * GIB);
    assert_goes_to(f, 3, "0"); /* before it, so that it passes nobody but the head */
    f->now_ns += SECONDS(3600);
    waits(f, 1, GIB);
    assert_waits(f, 5);
    assert_reason(f, 5, "2 jobs before it in the queue, first of them job 2");
    job_event(f, RECORD_CANCELLED, 4);
    assert_goes_to(f, 5, "0");
}

CORE_TEST(test_a_reservation_ends_with_its_job)
{
    begin(f, 1, 10 * GIB);
    waits(f, 1, 39 * GIB);
    waits(f, 1, 30 * GIB);
    starve(f);
    assert_int_equal(core_gpu(f->core, 0)->reserved_for, 2);
    assert_reason(f, 3, "GPU 0 is reserved for job 2, which has waited over 1 h");
    job_event(f, RECORD_CANCELLED, 2);
    assert_int_equal(core_gpu(f->core, 0)->reserved_for, 0);
}

CORE_TEST(test_others_use_what_a_reservation_leaves)
{
    begin(f, 1, 10 * GIB);
    waits(f, 1, 30 * GIB);
    starve(f);
    waits(f, 1, 6 * GIB);
    waits(f, 1, 4 * GIB); /* with the third no longer beside the second: 30 + 6 + 4 > 39 */
    waits(f, 1, 3 * GIB);
    assert_goes_to(f, 3, "0");
    assert_string_equal(placed_on(f, 4), "");
    assert_string_equal(placed_on(f, 5), "0");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, 2, "0");
}

CORE_TEST(test_an_idle_gpu_that_is_reserved_stays_idle)
{
    begin(f, 2, 10 * GIB);
    waits(f, 2, 39 * GIB);
    starve(f);
    assert_int_equal(core_gpu(f->core, 1)->reserved_for, 2);
    waits(f, 1, GIB);
    assert_waits(f, 3);
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, 2, "0,1");
}
