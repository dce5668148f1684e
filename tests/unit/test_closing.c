/* GPUs on which programs do not start (core/gpus/closing.h). */
#include "core/gpus/closing.h"

#include "core_fixture.h"

#include "core/core_internal.h"

static uint64_t of_user(struct fixture *f, const char *workload, uint32_t uid)
{
    struct record record = wants(1, 4 * GIB);

    record.submitted.uid = uid;
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s", workload);
    return submit_record(f, record);
}

/* A run of the workload ends so many seconds after its placement, and GPU 0 is named as the cause. */
static uint64_t ends(struct fixture *f, const char *workload, uint32_t uid, int after_s, uint32_t cause)
{
    uint64_t job = of_user(f, workload, uid);
    struct record record = {.type = RECORD_EXITED, .job = job};

    decide(f);
    memory_observed(f, job, core_find_job(f->core, job)->placements[0].gpu, GIB);
    f->now_ns += SECONDS(after_s);
    record.exited = (struct record_exited){.cause = cause, .requested_bytes = -1, .free_bytes = -1, .used_bytes = -1};
    record.exited.failed_gpu = cause == EXIT_GPU_ERROR ? 0 : RECORD_NO_GPU;
    apply(f, record);
    decide(f);
    return job;
}

static bool is_closed_to(struct fixture *f, uint32_t uid)
{
    struct record cancel = {.type = RECORD_CANCELLED, .job = of_user(f, "another", uid)};
    bool is_closed = closing_is_closed_to(f->core, core_find_job(f->core, cancel.job), f->core->gpus[0]);
    bool goes_there;

    decide(f);
    goes_there = strchr(placed_on(f, cancel.job), '0');
    assert_false(is_closed && goes_there);
    apply(f, cancel);
    return is_closed;
}

CORE_TEST(test_to_whom_dead_starts_close_it)
{
    static const struct {
        const char *workloads[4]; /* NULL: no more */
        uint32_t uids[4];
        int after_s, between_s;
        bool to_1, to_9;
    } rows[] = {
        {{"a", "b", "c"}, {1, 2, 1}, 5, 0, true, true},
        {{"a", "b", "c"}, {1, 1, 1}, 5, 0, true, false},
        {{"a", "b", "c"}, {1, 1, 1}, 60, 0, true, false},
        {{"a", "b", "c"}, {1, 2, 1}, 61, 0, false, false}, /* these ran */
        {{"a", "b", "a", "b"}, {1, 1, 1, 1}, 5, 0, false, false},
        {{"a", "a", "a"}, {1, 2, 3}, 5, 0, true, true},
        {{"a", "b", "c", "d"}, {1, 1, 1, 2}, 5, 0, true, true},
        {{"a", "b", "c"}, {1, 2, 1}, 5, 7000, false, false}, /* hours apart */
    };

    change(f, max_retries, 0);
    for (size_t i = 0; i < array_size(rows); i++) {
        struct gpu *gpu = f->core->gpus[0];
        for (size_t j = 0; j < 4 && rows[i].workloads[j]; j++) {
            ends(f, rows[i].workloads[j], rows[i].uids[j], rows[i].after_s, EXIT_GPU_ERROR);
            f->now_ns += SECONDS(rows[i].between_s);
        }
        if (is_closed_to(f, 1) != rows[i].to_1 || is_closed_to(f, 9) != rows[i].to_9)
            fail_msg("row %zu", i);
        apply(f, (struct record){.type = RECORD_GPU_OPENED, .gpu.gpu = gpu->number});
        assert_false(is_closed_to(f, 1) || is_closed_to(f, 9));
        f->now_ns += 4 * CLOSING_NS;
    }
}

static void close_it(struct fixture *f)
{
    change(f, max_retries, 0);
    ends(f, "a", 1, 5, EXIT_GPU_ERROR);
    ends(f, "b", 2, 5, EXIT_GPU_ERROR);
    ends(f, "c", 3, 5, EXIT_GPU_ERROR);
    assert_true(is_closed_to(f, 9));
}

CORE_TEST(test_it_is_tried_again)
{
    close_it(f);
    f->now_ns += CLOSING_NS - SECONDS(10);
    decide(f);
    assert_true(is_closed_to(f, 9));
    f->now_ns += SECONDS(20);
    decide(f);
    assert_false(is_closed_to(f, 9));
    ends(f, "d", 4, 5, EXIT_GPU_ERROR); /* one is enough now */
    assert_true(is_closed_to(f, 9));
    f->now_ns += CLOSING_NS + NS_PER_SEC;
    decide(f);
    ends(f, "e", 4, 100, EXIT_FAILED); /* it used the GPU for longer */
    ends(f, "f", 5, 5, EXIT_GPU_ERROR);
    assert_false(is_closed_to(f, 9));
}

CORE_TEST(test_it_is_closed_in_a_snapshot)
{
    struct record_list taken = {0};
    struct core *core;

    close_it(f);
    core = restored(f, &taken);
    assert_memory_equal(&core->gpus[0]->closing, &f->core->gpus[0]->closing, sizeof core->gpus[0]->closing);
    core_free(core);
    record_list_release(&taken);
}

/* Who failed there is tried elsewhere, and says what he waits for where nothing else is left. */
CORE_TEST(test_a_retry_goes_elsewhere)
{
    uint64_t job;

    keep_gpus(f, 2);
    job = ends(f, "a", 1, 5, EXIT_GPU_ERROR);
    assert_string_equal(placed_on(f, job), "1");
    close_it(f);
    job = of_user(f, "d", 4);
    assert_goes_to(f, job, "1");
}

CORE_TEST(test_a_retry_that_needs_all_gpus_takes_them)
{
    uint64_t job = submit(f, GPUS, 4 * GIB);

    assert_goes_to(f, job, "0,1,2,3");
    apply(f, (struct record){
                 .type = RECORD_EXITED,
                 .job = job,
                 .exited = {.cause = EXIT_GPU_ERROR, .requested_bytes = -1, .free_bytes = -1, .used_bytes = -1}});
    assert_goes_to(f, job, "0,1,2,3");
}

RUN_TESTS(NULL, NULL)
