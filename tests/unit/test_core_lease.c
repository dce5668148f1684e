/* Leases: jobs of the core whose processes somebody else starts. */
#include "core_fixture.h"

#include "core/learn/learn.h"
#include "core/waiting/order.h"
#include "core/share/slowdown.h"

static uint64_t lease(struct fixture *f, uint32_t gpus, int64_t request, int64_t max_wait_ns)
{
    struct record record = wants(gpus, request);

    record.submitted.external = true;
    record.submitted.requeue = true;
    record.submitted.max_wait_ns = max_wait_ns;
    return submit_record(f, record);
}

static void refused(struct fixture *f, struct record record)
{
    record.at_ns = f->now_ns;
    assert_true(core_apply(f->core, &record, NULL) < 0);
}

/* A lease goes before local jobs, and behind the leases before it. */
CORE_TEST(test_order)
{
    uint64_t whole = submit(f, GPUS, 30 * GIB), local, first, second;

    assert_starts(f, whole);
    local = submit(f, GPUS, 30 * GIB);
    first = lease(f, GPUS, 30 * GIB, 0);
    second = lease(f, GPUS, 30 * GIB, 0);
    decide(f);
    assert_ptr_equal(order_head(f->core, f->now_ns), core_find_job(f->core, first));
    exits(f, whole, EXIT_COMPLETED, -1);
    assert_starts(f, first);
    assert_string_equal(placed_on(f, local), "");
    exits(f, first, EXIT_COMPLETED, -1);
    assert_starts(f, second);
}

/* Also before a job that was there first, and waits for its retry. */
CORE_TEST(test_before_retries)
{
    uint64_t wide = submit(f, GPUS - 1, 30 * GIB), local, first, second;

    assert_starts(f, wide);
    local = submit(f, 1, 30 * GIB);
    assert_starts(f, local);
    first = lease(f, 1, 30 * GIB, 0);
    job_event(f, RECORD_STARTED, local);
    exits(f, local, EXIT_GPU_ERROR, -1);
    assert_starts(f, first);
    assert_true(core_find_job(f->core, local)->retry);
    second = lease(f, 1, 30 * GIB, 0);
    assert_ptr_equal(order_head(f->core, f->now_ns), core_find_job(f->core, second));
}

CORE_TEST(test_deadline)
{
    uint64_t whole = submit(f, GPUS, 30 * GIB), patient, hasty;

    assert_starts(f, whole);
    patient = lease(f, 1, 30 * GIB, 0);
    hasty = lease(f, 1, 30 * GIB, SECONDS(8));
    assert_null(decided(f, RECORD_EXPIRED, hasty));
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + SECONDS(8));
    f->now_ns += SECONDS(8) - 1;
    assert_null(decided(f, RECORD_EXPIRED, hasty));
    f->now_ns++;
    assert_non_null(decided(f, RECORD_EXPIRED, hasty));
    assert_null(core_find_job(f->core, hasty));
    assert_non_null(core_find_job(f->core, patient));
}

/* The next attempt is somebody else's to begin. */
CORE_TEST(test_returned)
{
    uint64_t job = lease(f, 1, 5 * GIB, 0);

    assert_goes_to(f, job, "0");
    job_event(f, RECORD_STARTED, job);
    memory_observed(f, job, 0, 5 * GIB);
    exits(f, job, EXIT_GPU_OOM, 20 * GIB);
    const struct record *returned = decided(f, RECORD_RETURNED, job);
    assert_true(returned->returned.reserved_bytes >= 5 * GIB);
    assert_int_equal(returned->returned.crashes, 1);
    assert_null(core_find_job(f->core, job));
    assert_int_equal(core_gpu(f->core, 0)->resident_count, 0);

    job = lease(f, 1, 5 * GIB, 0);
    decide(f);
    job_event(f, RECORD_LOST, job);
    assert_int_equal(decided(f, RECORD_RETURNED, job)->returned.reserved_bytes, 5 * GIB);
}

static const struct {
    uint32_t cause, to;
} ends_without_a_word[] = {{EXIT_ORPHAN, JOB_LOST}, {EXIT_EXPIRED, JOB_EXPIRED}};

EACH_ROW(TEST, test_ends_without_a_word, ends_without_a_word)
{
    struct record exited = {.type = RECORD_EXITED};

    exited.exited.cause = row->cause;
    assert_int_equal(job_state_after(JOB_RUNNING, &exited), row->to);
    assert_int_equal(job_state_after(JOB_STOPPING, &exited), JOB_CANCELLED);
}

/* It leaves the SMs to others, and keeps its memory. Its place, its time and its kind outlive a restart; a lease and a
 * job of carma's alike. */
CORE_TEST(test_suspended)
{
    for (int external = 0; external < 2; external++) {
        CLEANUP(record_list_release) struct record_list records = {0};
        struct record record = wants(1, 10 * GIB);

        record.submitted.external = external;
        record.submitted.smact_permille = 900;
        uint64_t job = submit_record(f, record);
        const struct job *held = core_find_job(f->core, job);
        decide(f);
        assert_false(commanded(f, COMMAND_SUSPEND, job, 0)); /* no process is there */
        job_event(f, RECORD_STARTED, job);
        assert_false(commanded(f, COMMAND_RESUME, job, 0));
        int64_t free_bytes = gpu_free_bytes(f->core, core_gpu(f->core, held->placements[0].gpu));
        assert_true(commanded(f, COMMAND_SUSPEND, job, 0));
        assert_int_equal(gpu_free_bytes(f->core, core_gpu(f->core, held->placements[0].gpu)), free_bytes);
        assert_int_equal(learned_activity(held), 0);
        core_free(restored(f, &records));
        f->now_ns += SECONDS(5);
        assert_true(commanded(f, COMMAND_SUSPEND, job, 0));
        f->now_ns += SECONDS(5);
        assert_true(commanded(f, COMMAND_RESUME, job, 0));
        assert_int_equal(learned_activity(held), 900);
        assert_int_equal(held->run->suspended_ns, SECONDS(10));
    }
}

/* What an administrator has suspended only one resumes, whoever said it first. */
CORE_TEST(test_who_resumes)
{
    static const uint32_t admin = 9;
    struct record record = wants(1, GIB);

    record.submitted.uid = 1000;
    uint64_t job = submit_record(f, record);
    decide(f);
    job_event(f, RECORD_STARTED, job);
    assert_true(commanded(f, COMMAND_SUSPEND, job, 1000) && commanded(f, COMMAND_RESUME, job, 1000));
    assert_true(commanded(f, COMMAND_SUSPEND, job, 1000) && commanded(f, COMMAND_SUSPEND, job, admin));
    assert_true(commanded(f, COMMAND_SUSPEND, job, 1000));
    assert_false(commanded(f, COMMAND_RESUME, job, 1000));
    assert_true(commanded(f, COMMAND_RESUME, job, 0));
}

CORE_TEST(test_what_does_not_apply)
{
    uint64_t whole = submit(f, GPUS, 30 * GIB), local, waiting;
    struct record record = wants(1, GIB);

    assert_starts(f, whole);
    local = submit(f, 1, 30 * GIB);
    waiting = lease(f, 1, 30 * GIB, 0);
    refused(f, (struct record){.type = RECORD_HELD, .job = waiting});
    refused(f, (struct record){.type = RECORD_EXPIRED, .job = local});
    record.job = 99;
    record.submitted.max_wait_ns = SECONDS(1);
    refused(f, record);
    record.submitted.external = record.submitted.held = true;
    refused(f, record);
}

/* With gate = memory the prediction ranks GPUs, and closes none. */
CORE_TEST(test_gate)
{
    struct record busy = wants(GPUS, 5 * GIB);

    change(f, gate, GATE_MEMORY);
    change(f, settle_ns, 0);
    busy.submitted.smact_permille = 1000;
    submit_record(f, busy);
    decide(f);
    for (uint32_t gpu = 0; gpu < GPUS; gpu++)
        sample(f, gpu, 5 * GIB, 0, 1000);
    starts_with(f, lease(f, 1, 5 * GIB, 0));
    change(f, gate, GATE_ALL);
    assert_null(decided(f, RECORD_PLACED, lease(f, 1, 5 * GIB, 0)));
}
