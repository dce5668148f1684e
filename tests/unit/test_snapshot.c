/* States that refuse a snapshot, and invalid ones. That one gives the same state and decisions is in tests/property. */
#include "core_fixture.h"
#include "core/learn/learn.h"
#include "core/waiting/array.h"

/* A running job, one that waits, one that is held. */
static void make_state(struct fixture *f, struct record_list *snapshot)
{
    uint64_t job = submit(f, 1, 30 * GIB);

    decide(f);
    job_event(f, RECORD_STARTED, job);
    memory_observed(f, job, 0, GIB);
    submit(f, 4, 30 * GIB);
    job_event(f, RECORD_HELD, submit(f, 1, GIB));
    core_snapshot(f->core, f->now_ns, snapshot);
}

CORE_TEST(test_a_living_core_takes_none)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};

    make_state(f, &snapshot);
    for (size_t i = 0; i < snapshot.count; i++) {
        CLEANUP(free_ptr) char *before = core_dump(f->core);
        struct record record = snapshot.items[i];

        if (record.type == RECORD_RECONFIGURED)
            continue;
        if (record.type == RECORD_STATE_GPU)
            record.state_gpu.gpu.gpu = GPUS;
        if (record.type == RECORD_STATE_JOB)
            record.job += 100;
        assert_int_equal(core_apply(f->core, &record, &trouble), -EPERM);
        CLEANUP(free_ptr) char *after = core_dump(f->core);
        assert_string_equal(before, after);
    }
}

static bool is_taken(const struct job *job, void *last)
{
    return job->id == *(uint64_t *)last || job_state_has_gpus(job->state);
}

/* A question about one job has a copy that others' jobs and workloads, of which nothing is known, cost nothing. */
CORE_TEST(test_of_some_jobs)
{
    CLEANUP(record_list_release) struct record_list taken = {0};
    CLEANUP(drop_core) struct core *core = core_new();

    make_state(f, &taken);
    taken.count = 0;
    for (int i = 0; i < 50; i++) {
        struct record record = wants(1, GIB);
        snprintf(record.submitted.workload, sizeof record.submitted.workload, "w%d", i);
        submit_record(f, record);
    }
    core_snapshot_of(f->core, f->now_ns, is_taken, &f->last_job, &taken);
    assert_true(taken.count < 20);
    for (size_t i = 0; i < taken.count; i++)
        fail_if(core_apply(core, &taken.items[i], &trouble) != 0, trouble);
    fail_if(core_check(core, &trouble) != 0, trouble);
    assert_int_equal(core_job_count(core), 2);
    assert_ptr_equal(core_find_job(core, f->last_job)->run, &job_never_ran); /* it only waits */
}

/* Restores the snapshot without the last record of a type, or with that one twice; the verdict of the whole. */
static int restore_spoilt(const struct record_list *snapshot, uint32_t type, bool twice)
{
    struct core *core = core_new();
    size_t last = 0;
    int rc = 0;

    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->items[i].type == type)
            last = i;
    assert_true(last > 0);
    for (size_t i = 0; i < snapshot->count && rc == 0; i++) {
        if (i != last || twice)
            rc = core_apply(core, &snapshot->items[i], &trouble);
        if (i == last && twice && rc == 0)
            rc = core_apply(core, &snapshot->items[i], &trouble);
    }
    if (rc == 0)
        rc = core_check(core, &trouble);
    core_free(core);
    return rc;
}

CORE_TEST(test_a_part_is_no_snapshot)
{
    static const uint32_t types[] = {RECORD_STATE_GPU, RECORD_STATE_JOB, RECORD_STATE_PLACEMENT, RECORD_STATE_RESIDENT,
                                     RECORD_STATE_QUEUED};
    CLEANUP(record_list_release) struct record_list snapshot = {0};

    make_state(f, &snapshot);
    for (size_t i = 0; i < array_size(types); i++) {
        assert_int_not_equal(restore_spoilt(&snapshot, types[i], true), 0);
        if (types[i] != RECORD_STATE_GPU) /* no job has the last GPU */
            assert_int_not_equal(restore_spoilt(&snapshot, types[i], false), 0);
    }
}

CORE_TEST(test_a_server_without_clients_is_no_state)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    CLEANUP(drop_core) struct core *core = core_new();

    core_snapshot(f->core, f->now_ns, &snapshot);
    for (size_t i = 0; i < snapshot.count; i++) {
        if (snapshot.items[i].type == RECORD_STATE_GPU)
            snapshot.items[i].state_gpu.server = 7;
        assert_int_equal(core_apply(core, &snapshot.items[i], &trouble), 0);
    }
    assert_int_equal(core_check(core, &trouble), -EINVAL);
    assert_string_equal(trouble.text, "the MPS server of GPU 0 has no clients");
}

CORE_TEST(test_a_queue_out_of_order_is_no_state)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    struct record *last = NULL, swapped;
    CLEANUP(drop_core) struct core *core = core_new();
    int rc = 0;

    for (int i = 0; i < 2; i++)
        submit(f, 1, GIB);
    core_snapshot(f->core, f->now_ns, &snapshot);
    for (size_t i = 0; i < snapshot.count; i++) {
        struct record *record = &snapshot.items[i];
        if (record->type != RECORD_STATE_QUEUED)
            continue;
        if (last) {
            swapped = *last;
            *last = *record;
            *record = swapped;
        }
        last = record;
    }
    for (size_t i = 0; i < snapshot.count && rc == 0; i++)
        rc = core_apply(core, &snapshot.items[i], &trouble);
    assert_int_equal(rc, -EINVAL);
}

static uint64_t submit_workload(struct fixture *f, unsigned number)
{
    struct record record = wants(1, GIB);

    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%u", number);
    return submit_record(f, record);
}

/* Where a job strayed to, and which workload outgrew its request. A stray twice, or on its own GPU, is invalid. */
/* And of a user of whom nothing else is known, that his MPS server has failed. */
CORE_TEST(test_strays_and_outgrown_requests_are_kept)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    uint32_t uid;

    configure(f, "carma", MEMORY_RESERVE);
    change(f, learn, true);
    uint64_t job = submit_workload(f, 1);
    decide(f);
    memory_observed(f, job, 0, 5 * GIB);
    exits(f, job, EXIT_COMPLETED, -1);
    job = submit_workload(f, 1);
    decide(f);
    apply(f, (struct record){.type = RECORD_STRAYED, .job = job, .strayed = {2, GIB}});
    apply(f, (struct record){.type = RECORD_SHARE_FAULT, .share_fault = {.faulted = true, .of_user = true, .uid = 77}});
    assert_int_equal(learn_find(f->core, 0, "1")->outgrown_bytes, 5 * GIB);
    CLEANUP(drop_core) struct core *again = restored(f, &snapshot);
    assert_int_equal(core_check(again, &trouble), 0);
    assert_int_equal(job_stray_bytes_on(core_find_job(again, job), 2), GIB);
    assert_int_equal(learn_find(again, 0, "1")->outgrown_bytes, 5 * GIB);
    assert_true(core_share_faulted_user(again, &uid));
    assert_int_not_equal(restore_spoilt(&snapshot, RECORD_STATE_PLACEMENT, true), 0);
}

/* A GPU whose memory was never told has its number, refuses no job that may fit there, and takes none. */
CORE_TEST(test_a_gpu_of_unknown_memory_keeps_its_number)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    struct record lost = {.type = RECORD_GPU_LOST, .gpu = {.gpu = GPUS, .uuid = "GPU-never-read"}};
    struct record_submitted wants = {.gpus = 1, .request_bytes = INT64_C(1) << 50};

    assert_never(f, &wants, "1024.0 TiB of GPU memory needed, no GPU has that much (largest: 40.0 GiB)");
    apply(f, lost);
    assert_never(f, &wants, NULL);
    CLEANUP(drop_core) struct core *other = restored(f, &snapshot);
    assert_int_equal(core_gpu_count(other), GPUS + 1);
    assert_string_equal(core_gpu(other, GPUS)->uuid, "GPU-never-read");
    assert_true(core_gpu(other, GPUS)->lost && core_gpu(other, GPUS)->total_bytes == 0);
    lost.gpu = (struct record_gpu){.gpu = GPUS + 1};
    assert_int_equal(core_apply(other, &lost, &trouble), -EINVAL); /* it has no UUID */
}

/* The user with the most of them loses the oldest. */
CORE_TEST(test_nobody_pushes_out_what_others_have_taught)
{
    struct record record = wants(1, GIB);

    job_event(f, RECORD_CANCELLED, submit_workload(f, 1));
    record.submitted.uid = 7;
    for (unsigned i = 0; i < LEARN_MOST_PROFILES + 20; i++) {
        snprintf(record.submitted.workload, sizeof record.submitted.workload, "%u", i);
        job_event(f, RECORD_CANCELLED, submit_record(f, record));
    }
    assert_non_null(learn_find(f->core, 0, "1"));
    assert_null(learn_find(f->core, 7, "1"));
}

/* The latest submitted workloads are remembered, and those that have jobs; a snapshot keeps which and their order. */
CORE_TEST(test_workloads_are_bounded)
{
    enum { SURPLUS = 12, WITH_JOBS = 20, AGAIN = 30 };
    CLEANUP(record_list_release) struct record_list snapshot = {0};

    for (unsigned i = 0; i < LEARN_MOST_PROFILES; i++) {
        uint64_t job = submit_workload(f, i);
        if (i >= WITH_JOBS)
            job_event(f, RECORD_CANCELLED, job);
    }
    job_event(f, RECORD_CANCELLED, submit_workload(f, AGAIN));
    for (unsigned i = 0; i < SURPLUS; i++)
        job_event(f, RECORD_CANCELLED, submit_workload(f, LEARN_MOST_PROFILES + i));
    assert_int_equal(f->core->profile_count, LEARN_MOST_PROFILES);
    for (unsigned i = 0; i < LEARN_MOST_PROFILES + SURPLUS; i++) {
        bool kept = i < WITH_JOBS || i == AGAIN || i > WITH_JOBS + SURPLUS;
        char name[RECORD_WORKLOAD_SIZE];
        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(learn_find(f->core, 0, name) != NULL, kept);
    }

    CLEANUP(drop_core) struct core *again = restored(f, &snapshot);
    for (unsigned i = 0; i < SURPLUS; i++) {
        CLEANUP(free_ptr) char *one = NULL, *other = NULL;
        struct record record = wants(1, GIB);
        snprintf(record.submitted.workload, sizeof record.submitted.workload, "new %u", i);
        record.job = f->last_job + 1;
        record.at_ns = f->now_ns;
        assert_int_equal(core_apply(again, &record, &trouble), 0);
        submit_record(f, record);
        one = core_dump(f->core);
        other = core_dump(again);
        assert_string_equal(one, other);
    }
}

CORE_TEST(test_since_when_a_user_has_used_nothing_is_kept)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};

    starts_with(f, submit(f, 1, GIB));
    exits(f, 1, EXIT_COMPLETED, -1);
    CLEANUP(drop_core) struct core *again = restored(f, &snapshot);
    assert_int_equal(core_users(again)->use_ns, f->now_ns);
}

CORE_TEST(test_open_jobs_of_an_array_are_counted_anew)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    struct record record = wants(1, GIB);

    record.submitted.array = 1;
    record.submitted.array_most = 2;
    for (int i = 0; i < 4; i++)
        submit_record(f, record);
    CLEANUP(drop_core) struct core *again = restored(f, &snapshot);
    assert_int_equal(core_find_job(again, 1)->array->open, 2);
    assert_true(core_find_job(again, 3)->array_waits);
}
