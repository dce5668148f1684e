/* A user's limits (src/core/user.h): a job over a limit waits with its numbers, and no job waits for it. */
#include "core_fixture.h"
#include "core/need/need.h"

#define ADA 1000
#define BOB 1001

static uint64_t submit_as(struct fixture *f, uint32_t uid, uint32_t gpus, int64_t reservation)
{
    struct record record = wants(gpus, reservation);

    record.submitted.uid = uid;
    return submit_record(f, record);
}

static void limited(struct fixture *f, struct core_limits limits)
{
    change(f, per_user, limits);
}

static uint32_t reason_code(const struct fixture *f, uint64_t job)
{
    return core_reason(f->core, job, f->now_ns).code;
}

CORE_TEST(test_who_has_as_many_jobs_as_allowed_is_passed_over)
{
    limited(f, (struct core_limits){.max_running = 1});
    assert_int_equal(core_configuration(f->core)->backfill, 0);
    uint64_t first = submit_as(f, ADA, 1, 8 * GIB);
    uint64_t second = submit_as(f, ADA, 1, 8 * GIB);
    uint64_t third = submit_as(f, ADA, 1, 8 * GIB);
    uint64_t other = submit_as(f, BOB, 1, 8 * GIB);
    assert_starts(f, first);
    assert_string_not_equal(placed_on(f, other), ""); /* first in, first out, and yet before two others */
    assert_int_equal(f->decisions.count, 2);
    assert_int_equal(reason_code(f, second), REASON_USER_JOBS);
    assert_reason(f, second, "1 job of its user run, the limit (max_running_per_user)");
    assert_int_equal(reason_code(f, third), REASON_USER_JOBS);
    exits(f, first, EXIT_COMPLETED, -1);
    assert_starts(f, second);
    assert_int_equal(f->decisions.count, 1);
}

CORE_TEST(test_gpus_are_counted_for_each_job_that_has_them)
{
    limited(f, (struct core_limits){.max_gpus = 3});
    uint64_t two = submit_as(f, ADA, 2, 8 * GIB);
    uint64_t wide = submit_as(f, ADA, 2, 8 * GIB);
    uint64_t one = submit_as(f, ADA, 1, 8 * GIB);
    assert_starts(f, two);
    assert_string_not_equal(placed_on(f, one), ""); /* which is not too much */
    assert_int_equal(reason_code(f, wide), REASON_USER_GPUS);
    assert_reason(f, wide, "2 GPUs needed, its user has 3 of at most 3 (max_gpus_per_user)");
}

/* What all jobs have of the host's memory is a limit of the same kind, whoever they belong to. */
CORE_TEST(test_the_hosts_memory_is_given_out_once)
{
    static const int64_t asked[] = {20 * GIB, 20 * GIB, 0, 12 * GIB};
    uint64_t jobs[array_size(asked)];

    change(f, most.host_memory_bytes, 32 * GIB);
    for (size_t i = 0; i < array_size(asked); i++) {
        struct record record = wants(1, 8 * GIB);
        record.submitted.uid = i % 2 ? BOB : ADA;
        record.submitted.host_memory_bytes = asked[i];
        jobs[i] = submit_record(f, record);
    }
    decide(f);
    for (size_t i = 0; i < array_size(asked); i++)
        assert_int_equal(core_find_job(f->core, jobs[i])->state == JOB_QUEUED, i == 1);
    assert_int_equal(core_resources_held(f->core)->host_memory_bytes, 32 * GIB);
    assert_reason(f, jobs[1],
                  "20.0 GiB of the host's memory needed (--memory), jobs have 32.0 GiB of at most 32.0 GiB "
                  "(max_host_memory)");
    exits(f, jobs[3], EXIT_COMPLETED, -1);
    decide(f);
    assert_int_equal(reason_code(f, jobs[1]), REASON_HOST_MEMORY); /* 12 GiB are left */
    exits(f, jobs[0], EXIT_COMPLETED, -1);
    assert_starts(f, jobs[1]);
}

/* So is the number of jobs without a GPU, which need none, count for none, and start on no drained node. */
CORE_TEST(test_jobs_without_a_gpu_start_at_once)
{
    struct record whole = wants(1, 8 * GIB), memory = wants(0, 8 * GIB);
    const struct record_drained drain = {.gpu = RECORD_NO_GPU, .why = "cleaning"};
    uint64_t full[GPUS + 1], jobs[3];

    change(f, max_without_gpu, 2);
    whole.submitted.exclusive = true;
    for (size_t i = 0; i <= GPUS; i++)
        full[i] = submit_record(f, whole);
    for (size_t i = 0; i < array_size(jobs); i++)
        jobs[i] = submit_as(f, ADA, 0, -1);
    decide(f);
    assert_string_not_equal(placed_on(f, full[0]), "");
    for (size_t i = 0; i < array_size(jobs); i++)
        assert_int_equal(core_find_job(f->core, jobs[i])->state, i < 2 ? JOB_PLACED : JOB_QUEUED);
    assert_int_equal(was_decided(f, RECORD_PLACED, jobs[0])->placed.count, 0);
    assert_reason(f, jobs[2], "2 jobs without a GPU run, the limit (max_jobs_without_gpu)");
    assert_int_equal(reason_code(f, full[GPUS]), REASON_NO_IDLE_GPU); /* it is as if they were not there */
    apply(f, (struct record){.type = RECORD_GPU_DRAINED, .drained = drain});
    exits(f, jobs[0], EXIT_GPU_OOM, -1); /* whatever it wrote */
    assert_int_equal(decided(f, RECORD_GAVE_UP, jobs[0])->gave_up.memory, false);
    assert_reason(f, jobs[2], "the node is drained: cleaning");
    apply(f, (struct record){.type = RECORD_GPU_RESUMED, .drained.gpu = RECORD_NO_GPU});
    assert_non_null(decided(f, RECORD_PLACED, jobs[2]));
    memory.job = 99;
    assert_int_equal(core_apply(f->core, &memory, NULL), -EINVAL);
}

/* Also on GPUs that a job was not given; with its end that is over. */
CORE_TEST(test_memory_elsewhere_is_charged)
{
    limited(f, (struct core_limits){.max_memory_bytes = 50 * GIB});
    uint64_t first = submit_as(f, ADA, 1, 10 * GIB);
    assert_starts(f, first);
    apply(f, (struct record){.type = RECORD_STRAYED, .job = first, .strayed = {2, 20 * GIB}});
    apply(f, (struct record){.type = RECORD_STRAYED, .job = first, .strayed = {2, 5 * GIB}}); /* the most counts */
    uint64_t second = submit_as(f, ADA, 1, 21 * GIB);
    assert_waits(f, second);
    assert_int_equal(reason_code(f, second), REASON_USER_MEMORY);
    exits(f, first, EXIT_COMPLETED, -1);
    assert_starts(f, second);
    assert_true(core_find_job(f->core, second)->user->memory_bytes == 21 * (uint64_t)GIB);
}

CORE_TEST(test_memory_is_what_jobs_reservation_on_all_their_gpus)
{
    limited(f, (struct core_limits){.max_memory_bytes = 50 * GIB});
    uint64_t first = submit_as(f, ADA, 2, 10 * GIB);
    uint64_t second = submit_as(f, ADA, 1, 31 * GIB);
    uint64_t unknown = submit_as(f, ADA, 1, -1);
    assert_starts(f, first);
    assert_int_equal(f->decisions.count, 1);
    assert_int_equal(reason_code(f, second), REASON_USER_MEMORY);
    assert_reason(
        f, second,
        "31.0 GiB of GPU memory needed, its user's jobs have 20.0 GiB of at most 50.0 GiB (max_gpu_memory_per_user)");
    assert_int_equal(reason_code(f, unknown), REASON_USER_MEMORY);
    assert_reason(f, unknown,
                  "40.0 GiB of GPU memory needed (whole GPUs: it requests none), its user's jobs have 20.0 GiB of at "
                  "most 50.0 GiB "
                  "(max_gpu_memory_per_user)");
    exits(f, first, EXIT_COMPLETED, -1);
    assert_starts(f, second);
}

/* Even where it was observed to use little: it may use its request at any time. A guess counts as corrected later. */
CORE_TEST(test_a_request_counts_in_whole_after_it_was_shrunk)
{
    struct record guessed = wants(1, 30 * GIB);

    limited(f, (struct core_limits){.max_memory_bytes = 50 * GIB});
    uint64_t declared = submit_as(f, ADA, 1, 30 * GIB);
    guessed.submitted.uid = BOB;
    guessed.submitted.request_source = SOURCE_ESTIMATED;
    guessed.job = submit_record(f, guessed);
    uint64_t second = submit_as(f, ADA, 1, 21 * GIB);
    decide(f);
    assert_int_equal(f->decisions.count, 2);
    for (uint64_t job = declared; job <= guessed.job; job++)
        apply(f, (struct record){.type = RECORD_SHRUNK, .job = job, .shrunk = {5 * GIB, SOURCE_OBSERVED}});
    assert_true(core_find_job(f->core, declared)->user->memory_bytes == 30 * (uint64_t)GIB);
    assert_true(core_find_job(f->core, guessed.job)->user->memory_bytes == 5 * (uint64_t)GIB);
    assert_nothing_decided(f);
    assert_int_equal(reason_code(f, second), REASON_USER_MEMORY);
    apply(f, (struct record){.type = RECORD_GROWN, .job = declared, .grown = {35 * GIB, SOURCE_OBSERVED}});
    assert_true(core_find_job(f->core, declared)->user->memory_bytes == 35 * (uint64_t)GIB);
}

CORE_TEST(test_what_one_job_may_never_have_is_refused)
{
    struct record record = wants(4, 8 * GIB);

    limited(f, (struct core_limits){.max_gpus = 3});
    assert_never(f, &record.submitted, "4 GPUs needed, a user's limit is 3 (max_gpus_per_user)");
    limited(f, (struct core_limits){.max_memory_bytes = 31 * GIB});
    assert_never(f, &record.submitted,
                 "32.0 GiB of GPU memory needed, a user's limit is 31.0 GiB (max_gpu_memory_per_user)");
    record.submitted.gpus = 1;
    assert_never(f, &record.submitted, NULL);
    record.submitted.request_bytes = -1;
    assert_never(f, &record.submitted,
                 "40.0 GiB of GPU memory needed (whole GPUs: it requests none), a "
                 "user's limit is 31.0 GiB (max_gpu_memory_per_user)");
}

/* With backfill another user's smaller job can take the GPU meant for the first of the queue: the reservation ends. */
CORE_TEST(test_who_is_over_a_limit_keeps_no_gpus_for_himself)
{
    limited(f, (struct core_limits){.max_gpus = 4});
    change(f, backfill, 8);
    change(f, starvation_timeout_ns, 0);
    use_policy(f, "carma"); /* which lets others in beside the job that has it reserved */
    uint64_t running = submit_as(f, BOB, 1, 30 * GIB);
    assert_starts(f, running);
    uint64_t wide = submit_as(f, ADA, 4, 20 * GIB);
    decide(f);
    assert_int_equal(f->core->reserved_job, wide);
    uint64_t small = submit_as(f, ADA, 1, 2 * GIB);
    assert_starts(f, small);
    assert_int_equal(f->core->reserved_job, 0);
    assert_int_equal(reason_code(f, wide), REASON_USER_GPUS);
}

/* A user that is given GPUs reserved for another may have reached its limit by that: the next job is looked at anew. */
CORE_TEST(test_a_start_on_reserved_gpus_counts_for_who_comes_next)
{
    limited(f, (struct core_limits){.max_running = 2});
    change(f, backfill, 8);
    change(f, starvation_timeout_ns, 0);
    uint64_t first = submit_as(f, ADA, 1, 8 * GIB);
    uint64_t second = submit_as(f, ADA, 1, 8 * GIB);
    uint64_t wide = submit_as(f, BOB, 4, 35 * GIB);
    decide(f);
    assert_int_equal(f->decisions.count, 3);
    assert_int_equal(f->core->reserved_job, wide);
    change(f, per_user.max_running, 1);
    for (uint64_t job = first; job <= second; job++) {
        job_event(f, RECORD_STARTED, job);
        exits(f, job, EXIT_MPS_FAULT, -1);
    }
    assert_starts(f, first);
    assert_string_equal(placed_on(f, second), "");
    assert_int_equal(reason_code(f, second), REASON_USER_JOBS);
}

/* Beyond the budget a crashed job is retried all the same, alone, but not before others. */
CORE_TEST(test_a_user_has_so_many_retries_within_an_hour)
{
    uint64_t jobs[4];

    limited(f, (struct core_limits){.max_retries = 2});
    for (int i = 0; i < 3; i++)
        jobs[i] = submit_as(f, ADA, 1, 35 * GIB);
    jobs[3] = submit_as(f, BOB, 1, 35 * GIB);
    decide(f);
    for (int i = 0; i < 4; i++)
        job_event(f, RECORD_STARTED, jobs[i]);
    for (int i = 0; i < 4; i++) {
        exits(f, jobs[i], EXIT_GPU_OOM, -1);
        assert_decides(f, RECORD_REQUEUED);
        assert_int_equal(f->decisions.items[0].requeued.retry, i != 2);
        assert_true(f->decisions.items[0].requeued.reserved_bytes >= 35 * GIB);
        assert_true(job_wants_idle(f->core, core_find_job(f->core, jobs[i])));
        assert_string_not_equal(placed_on(f, jobs[i]), "");
    }
    f->now_ns += SECONDS(3600);
    exits(f, jobs[2], EXIT_GPU_OOM, -1);
    decide(f);
    assert_true(f->decisions.items[0].requeued.retry);
}
