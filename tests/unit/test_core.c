/* The core's rules one by one. Others: tests/property (of every world), test_policies.c, test_placement.c (carma's). */
#include "core/gpus/suits.h"
#include "core_fixture.h"

/* ---- Preconditions: exactly at the limit is enough ---- */

static const struct {
    int64_t used, request;
    int32_t smact;
    const char *placed, *reason;
} floor_and_cap[] = {
    {35 * GIB, -1, 0, "2", NULL},
    {35 * GIB + 1, -1, 0, "", "5.0 GiB free at most, on GPU 2; 5.0 GiB needed"},
    {GIB, -1, 800, "2", NULL},
    {GIB, -1, 801, "", "GPU 2 is too busy to share: SM activity 80.1%, the limit is 80.0%"},
    {GIB, -1, -1, "", NULL},           /* not measured: not shared */
    {30 * GIB, 9 * GIB, 0, "2", NULL}, /* margin 1 GiB */
    {30 * GIB, 9 * GIB + 1, 0, "", NULL},
};

CORE_EACH_ROW(test_floor_and_cap, floor_and_cap)
{
    configure(f, "magm", MEMORY_MONITOR);
    occupy(f, (int64_t[]){39 * GIB, 39 * GIB, row->used, 39 * GIB}, (int32_t[]){0, 0, row->smact, 0});
    uint64_t job = submit(f, 1, row->request);
    assert_goes_to(f, job, row->placed);
    if (row->reason)
        assert_reason(f, job, row->reason);
}

CORE_TEST(test_monitor_closes_a_gpu_until_memory_settles)
{
    configure(f, "magm", MEMORY_MONITOR);
    keep_gpus(f, 1);
    uint64_t first = submit(f, 1, -1);
    uint64_t second = submit(f, 1, -1);
    assert_goes_to(f, first, "0");
    assert_string_equal(placed_on(f, second), "");
    f->now_ns += SECONDS(100);
    assert_waits(f, second);
    memory_observed(f, first, 0, GIB);
    assert_reason(f, second, "job 1 on GPU 0 may not have taken all its memory yet (at most 0:30 more)");
    f->now_ns += SECONDS(30) - 1;
    assert_waits(f, second);
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + 1);
    f->now_ns += 1;
    assert_goes_to(f, second, "0");
    second = submit(f, 1, -1);
    assert_waits(f, second);
    f->now_ns -= SECONDS(3600); /* a clock set back settles nothing for hours */
    assert_goes_to(f, second, "0");
}

/* A GPU that was open under a shorter setting opens once more. */
CORE_TEST(test_a_gpu_that_settles_again_opens_again)
{
    configure(f, "magm", MEMORY_MONITOR);
    keep_gpus(f, 1);
    submit(f, 1, -1);
    decide(f);
    uint64_t second = submit(f, 1, -1);
    job_event(f, RECORD_HELD, second);
    uint64_t wide = submit(f, 2, -1);
    change(f, settle_ns, SECONDS(1));
    decide(f);
    change(f, settle_ns, SECONDS(30));
    job_event(f, RECORD_HELD, wide);
    job_event(f, RECORD_RELEASED, second);
    f->now_ns += GPU_SETTLE_LIMIT * SECONDS(30) - 1; /* nor does memory that is never seen close one for ever */
    assert_waits(f, second);
    f->now_ns += 1;
    assert_goes_to(f, second, "0");
}

CORE_TEST(test_decision_period)
{
    change(f, decide_period_ns, SECONDS(30));
    submit(f, 1, GIB);
    submit(f, 1, GIB);
    assert_goes_to(f, 1, "0");
    assert_string_equal(placed_on(f, 2), "");
    assert_reason(f, 2, "next decision in 0:30");
    f->now_ns -= SECONDS(3600); /* the clock is set back: nobody waits an hour for it */
    assert_goes_to(f, 2, "1");
    exits(f, 2, EXIT_COMPLETED, -1);
    submit(f, 1, GIB);
    f->now_ns += SECONDS(1);
    assert_waits(f, 3);
    assert_reason(f, 3, "next decision in 0:29");
    f->now_ns -= SECONDS(1);
    assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + SECONDS(30));
    f->now_ns += SECONDS(30);
    assert_goes_to(f, 3, "1");
}

/* ---- Reservations ---- */

CORE_TEST(test_observed_memory_beyond_the_reservation_counts)
{
    for (uint32_t i = 0; i < GPUS; i++)
        submit(f, 1, i == 1 ? 10 * GIB : 39 * GIB);
    decide(f);
    memory_observed(f, 2, 1, 15 * GIB);
    assert_int_equal(gpu_free_bytes(f->core, core_gpu(f->core, 1)), 24 * GIB);
    sample(f, 1, 18 * GIB, 3 * GIB, 0);
    assert_int_equal(gpu_free_bytes(f->core, core_gpu(f->core, 1)), 21 * GIB);
    sample(f, 1, 18 * GIB, -1, 0); /* not attributed: the larger of the used and the reserved memory */
    assert_int_equal(gpu_free_bytes(f->core, core_gpu(f->core, 1)), 21 * GIB);
    sample(f, 1, 2 * GIB, -1, 0);
    assert_int_equal(gpu_free_bytes(f->core, core_gpu(f->core, 1)), 24 * GIB);
}

CORE_TEST(test_unknown_memory_reserves_a_whole_gpu)
{
    for (uint32_t i = 0; i < GPUS; i++)
        submit(f, 1, i ? GIB : -1);
    submit(f, 1, GIB);
    submit(f, 1, -1);
    assert_goes_to(f, 1, "0");
    assert_string_equal(placed_on(f, 5), "1");
    assert_string_equal(placed_on(f, 6), "");
    assert_reason(f, 6, "1 idle GPU needed, 0 are idle");
}

CORE_TEST(test_unmanaged_memory_keeps_a_gpu_from_being_idle)
{
    sample(f, 0, GPU_IDLE_UNMANAGED_BYTES + 1, GPU_IDLE_UNMANAGED_BYTES + 1, 0);
    sample(f, 1, GPU_IDLE_UNMANAGED_BYTES, GPU_IDLE_UNMANAGED_BYTES, 0);
    uint64_t job = submit(f, 1, -1);
    assert_goes_to(f, job, "1");
}

CORE_TEST(test_jobs_per_gpu_are_limited)
{
    change(f, max_jobs_per_gpu, 2);
    for (uint32_t i = 0; i <= 2 * GPUS; i++)
        submit(f, 1, GIB);
    decide(f);
    assert_int_equal(f->decisions.count, 2 * GPUS);
    assert_reason(f, 9, "GPU 0 runs 2 jobs, the limit (max_jobs_per_gpu)");
}

/* ---- Exclusive jobs, queue order, several GPUs ---- */

CORE_TEST(test_exclusive_job_is_alone)
{
    struct record record = wants(1, GIB);

    keep_gpus(f, 1);
    record.submitted.exclusive = true;
    submit_record(f, record);
    submit(f, 1, GIB);
    submit_record(f, record);
    assert_goes_to(f, 1, "0");
    assert_string_equal(placed_on(f, 2), "");
    assert_reason(f, 2, "GPU 0 runs job 1, which is exclusive");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, 2, "0"); /* and now the exclusive one waits for it */
    assert_reason(f, 3, "1 idle GPU needed, 0 are idle");
}

CORE_TEST(test_fifo_blocks_behind_the_head)
{
    submit(f, 1, 30 * GIB);
    decide(f);
    uint64_t big = submit(f, 4, 30 * GIB);
    uint64_t small = submit(f, 1, GIB);
    uint64_t later = submit(f, 1, GIB);
    assert_nothing_decided(f);
    assert_reason(f, small, "1 job before it in the queue, first of them job 2");
    assert_reason(f, later, "2 jobs before it in the queue, first of them job 2");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, big, "0,1,2,3");
    assert_string_equal(placed_on(f, small), "0");
}

static uint64_t ahead(const struct fixture *f, uint64_t job)
{
    struct reason reason = core_reason(f->core, job, f->now_ns);

    assert_int_equal(reason.code, REASON_BEHIND);
    return reason.ahead;
}

/* In any order of questions, and after any events in between. */
CORE_TEST(test_how_many_are_ahead)
{
    configure(f, "exclusive", MEMORY_MONITOR);
    for (uint32_t i = 0; i < GPUS; i++)
        submit(f, 1, -1);
    decide(f);
    uint64_t first = submit(f, 1, -1);
    for (uint64_t i = 1; i <= 100; i++)
        submit(f, 1, -1);
    decide(f);
    for (uint64_t i = 1; i <= 100; i++)
        assert_int_equal(ahead(f, first + i), i);
    for (uint64_t i = 100; i >= 1; i--)
        assert_int_equal(ahead(f, first + i), i);
    assert_int_equal(ahead(f, first + 50), 50);
    job_event(f, RECORD_CANCELLED, first + 20);
    assert_int_equal(ahead(f, first + 51), 50);
    assert_int_equal(ahead(f, first + 52), 51);
    job_event(f, RECORD_CANCELLED, first + 53);
    assert_int_equal(ahead(f, first + 54), 52);
    assert_int_equal(ahead(f, first + 10), 10);
}

CORE_TEST(test_hold_and_release)
{
    submit(f, 4, -1);
    decide(f);
    submit(f, 1, -1);
    submit(f, 1, -1);
    job_event(f, RECORD_HELD, 2);
    assert_reason(f, 2, "held: 'carma release' lets it run");
    exits(f, 1, EXIT_COMPLETED, -1);
    job_event(f, RECORD_RELEASED, 2); /* back to its place, before job 3 */
    assert_goes_to(f, 2, "0");
    assert_string_equal(placed_on(f, 3), "1");
    assert_int_equal(core_apply(f->core, &(struct record){.type = RECORD_HELD, .job = 2}, &trouble), -EPERM);
    assert_string_equal(trouble.text, "job 2 is PLACED: 'held' does not apply");
}

CORE_TEST(test_what_can_never_run)
{
    struct record_submitted five_gpus = wants(5, -1).submitted, too_large = wants(2, TOTAL + 1).submitted;
    struct record_submitted whole = wants(4, TOTAL).submitted;

    assert_never(f, &whole, NULL);
    assert_never(f, &five_gpus, "5 GPUs needed, the node has 4");
    assert_never(f, &too_large, "40.0 GiB of GPU memory needed, no GPU has that much (largest: 40.0 GiB)");
    submit(f, 5, -1);
    assert_decides(f, RECORD_REFUSED);
    assert_null(core_find_job(f->core, 1));
}

/* ---- Retry (thesis 6.2.3) ---- */

CORE_TEST(test_crash_goes_to_the_retry_queue_and_starts_alone)
{
    configure(f, "magm", MEMORY_MONITOR);
    occupy(f, (int64_t[]){GIB, GIB, GIB, GIB}, (int32_t[]){0, 0, 0, 0});
    job_event(f, RECORD_HELD, submit(f, 1, -1)); /* it was there first */
    submit(f, 1, -1);                            /* joins GPU 0 */
    assert_goes_to(f, 6, "0");
    job_event(f, RECORD_RELEASED, 5);
    memory_observed(f, 6, 0, GIB);
    exits(f, 6, EXIT_GPU_OOM, 2 * GIB);
    assert_decides(f, RECORD_REQUEUED);
    assert_true(f->decisions.items[0].requeued.retry);
    assert_int_equal(f->decisions.items[0].requeued.crashes, 1);
    f->now_ns += SECONDS(60);
    /* GPUs 1 to 3 would do for sharing, but a retried job wants an idle one, and blocks the queue. */
    assert_nothing_decided(f);
    assert_reason(f, 6, "1 idle GPU needed, 0 are idle");
    assert_reason(f, 5, "job 6 goes first: it is retried");
    exits(f, 4, EXIT_COMPLETED, -1);
    assert_goes_to(f, 6, "3");
    assert_true(f->decisions.items[0].placed.retry);
    assert_string_not_equal(placed_on(f, 5), "3"); /* may be joined only once its memory has settled */
    memory_observed(f, 6, 3, GIB);
    sample(f, 3, GIB, 0, 0);
    for (uint32_t g = 0; g < 3; g++)
        sample(f, g, 39 * GIB, 0, 0);
    f->now_ns += SECONDS(31);
    submit(f, 1, -1);
    assert_goes_to(f, 7, "3"); /* joined */
}

CORE_TEST(test_a_crash_alone_is_retried_once)
{
    submit(f, 1, GIB);
    decide(f);
    exits(f, 1, EXIT_GPU_OOM, -1);
    assert_decides(f, RECORD_REQUEUED);
    assert_string_equal(placed_on(f, 1), "0");
    exits(f, 1, EXIT_GPU_OOM, -1);
    decide(f);
    assert_int_equal(f->decisions.count, 1);
    assert_int_equal(f->decisions.items[0].type, RECORD_GAVE_UP);
    assert_int_equal(core_job_count(f->core), 0);
}

CORE_TEST(test_a_crash_raises_the_reservation)
{
    submit(f, 1, 2 * GIB);
    decide(f);
    memory_observed(f, 1, 0, 3 * GIB);
    exits(f, 1, EXIT_GPU_OOM, 4 * GIB);
    decide(f);
    assert_int_equal(f->decisions.items[1].placed.reserved_bytes, 7 * GIB);
}

/* ---- Stopping ---- */

CORE_TEST(test_cancel)
{
    submit(f, 1, GIB);
    submit(f, 4, -1);
    decide(f);
    job_event(f, RECORD_CANCELLED, 2); /* waits: gone at once */
    assert_null(core_find_job(f->core, 2));
    job_event(f, RECORD_STARTED, 1);
    job_event(f, RECORD_CANCELLED, 1);
    decide(f);
    assert_int_equal(f->decisions.count, 1);
    assert_int_equal(f->decisions.items[0].type, RECORD_SIGNALLED);
    job_event(f, RECORD_CANCELLED, 1); /* again: nothing more */
    assert_nothing_decided(f);
    job_event(f, RECORD_SIGNAL_FAILED, 1);
    assert_nothing_decided(f); /* not at once */
    f->now_ns = core_next_wake_ns(f->core, f->now_ns);
    assert_decides(f, RECORD_SIGNALLED);
    exits(f, 1, EXIT_GPU_OOM, -1); /* however it ends, it is cancelled */
    assert_nothing_decided(f);
    assert_int_equal(core_job_count(f->core), 0);
    assert_true(gpu_idle(core_gpu(f->core, 0)));
}

/* It goes back to its place, however its run ends, and is charged with nothing; unless it is cancelled meanwhile. */
CORE_TEST(test_requeue)
{
    static const struct record ends[] = {
        {.type = RECORD_EXITED, .job = 1, .exited = {.cause = EXIT_GPU_OOM}},
        {.type = RECORD_LOST, .job = 1},
        {.type = RECORD_LOST, .job = 1, .lost = {.final = true}},
        {.type = RECORD_LAUNCH_FAILED, .job = 1},
    };

    submit(f, 4, 30 * GIB);
    submit(f, 4, 30 * GIB);
    assert_false(commanded(f, COMMAND_REQUEUE, 1, 0)); /* it waits */
    for (size_t i = 0; i < array_size(ends); i++) {
        assert_starts(f, 1);
        job_event(f, RECORD_STARTED, 1);
        assert_true(i != 1 || commanded(f, COMMAND_SUSPEND, 1, 0));
        assert_true(commanded(f, COMMAND_REQUEUE, 1, 0) && commanded(f, COMMAND_REQUEUE, 1, 0));
        decide(f);
        assert_int_equal(f->decisions.count, 1);
        assert_int_equal(f->decisions.items[0].type, RECORD_SIGNALLED);
        apply(f, ends[i]);
        assert_int_equal(core_find_job(f->core, 1)->crashes, 0);
    }
    assert_starts(f, 1);
    assert_true(commanded(f, COMMAND_REQUEUE, 1, 0));
    job_event(f, RECORD_CANCELLED, 1);
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_null(core_find_job(f->core, 1));
}

/* Of a deadline in 100 s, behind a job that has all GPUs: the latest second at which it still waits. */
static const struct {
    int64_t begin_s, limit_s, latest_s;
} who_is_too_late[] = {{0, 40, 60}, {0, 0, 100}, {50, 40, 60}, {70, 40, 60}};

CORE_EACH_ROW(test_who_is_too_late, who_is_too_late)
{
    struct record record = wants(1, 30 * GIB), begins = {.type = RECORD_DEPENDS};
    int64_t begun_ns = f->now_ns;

    submit(f, GPUS, 30 * GIB);
    decide(f);
    record.submitted.time_limit_ns = SECONDS(row->limit_s);
    record.submitted.deadline_ns = begun_ns + SECONDS(100);
    begins.job = submit_record(f, record);
    begins.depends = (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = begun_ns + SECONDS(row->begin_s)};
    if (row->begin_s)
        apply(f, begins);
    for (int64_t second = 0; second <= row->latest_s; second += 10) {
        f->now_ns = begun_ns + SECONDS(second);
        assert_null(decided(f, RECORD_EXPIRED, begins.job));
    }
    f->now_ns = core_next_wake_ns(f->core, f->now_ns);
    assert_int_equal(f->now_ns, begun_ns + SECONDS(row->latest_s) + 1);
    assert_non_null(decided(f, RECORD_EXPIRED, begins.job));
}

CORE_TEST(test_transitions_are_those_of_a_jobs_life)
{
    static const struct {
        uint32_t from;
        const char *to; /* letters of the states it may lead to, in the order of enum job_state */
    } life[] = {
        {JOB_HELD, "PD CA "},
        {JOB_QUEUED, "H CF CA RF EX "},
        {JOB_PLACED, "R CG RQ CD F NF EX RG "},
        {JOB_RUNNING, "CG RQ CD F NF EX S RG "},
        {JOB_STOPPING, "CA NF "},
        {JOB_CRASHED, "PD F OOM CA NF TO RT "},
        {JOB_COMPLETED, ""},
        {JOB_FAILED, ""},
        {JOB_GPU_OOM, ""},
        {JOB_CANCELLED, ""},
        {JOB_LOST, ""},
        {JOB_REFUSED, ""},
        {JOB_TIMEOUT, ""},
        {JOB_RETURNED, ""},
        {JOB_EXPIRED, ""},
        {JOB_SUSPENDED, "R CG RQ CD F NF EX RG "},
        {JOB_REQUEUING, "PD CG "},
    };
    struct record exited = {.type = RECORD_EXITED}, placed = {.type = RECORD_PLACED};

    assert_int_equal(array_size(life), JOB_STATE_COUNT);
    for (size_t i = 0; i < array_size(life); i++) {
        char allowed[64] = "";
        for (uint32_t to = 0; to < JOB_STATE_COUNT; to++)
            if (job_transition_allowed(life[i].from, to))
                snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s ", job_state_letter(to));
        assert_string_equal(allowed, life[i].to);
        assert_int_equal(job_state_ended(life[i].from), life[i].to[0] == '\0');
    }
    assert_int_equal(job_state_after(JOB_RUNNING, &placed), JOB_STATE_COUNT);
    assert_int_equal(job_state_after(JOB_HELD, &placed), JOB_STATE_COUNT);
    assert_int_equal(job_state_after(JOB_QUEUED, &exited), JOB_STATE_COUNT);
}

/* However many wait for one job or time, a record or decision changes few of them; a restored core goes on so. */
static const struct {
    uint32_t event, kind;
} many_go_in_steps[] = {{RECORD_CANCELLED, DEPENDS_OK},
                        {RECORD_CANCELLED, DEPENDS_ANY},
                        {RECORD_STARTED, DEPENDS_START},
                        {RECORD_TIMER, DEPENDS_TIME}};

CORE_EACH_ROW(test_many_go_in_steps, many_go_in_steps)
{
    struct record placed = {.type = RECORD_PLACED, .job = submit(f, 1, GIB)};
    uint64_t on = placed.job, first = f->last_job + 1;
    size_t told = 0;

    placed.placed = (struct record_placed){.count = 1, .reserved_bytes = GIB, .fence_bytes = -1};
    if (row->event == RECORD_STARTED)
        apply(f, placed);
    for (size_t i = 0; i < 500; i++) {
        struct record depends = {.type = RECORD_DEPENDS, .job = submit(f, 1, 30 * GIB)};
        depends.depends = (struct record_depends){.on = on, .kind = row->kind};
        if (row->kind == DEPENDS_TIME)
            depends.depends = (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = f->now_ns + 1};
        apply(f, depends);
    }
    assert_int_equal(core_users(f->core)->dependencies, row->kind == DEPENDS_TIME ? 0 : 500);
    f->now_ns += row->event == RECORD_TIMER;
    job_event(f, row->event, on);
    for (size_t steps = 0; told < 500; steps++) {
        struct record_list taken = {0}, decisions = {0};
        CLEANUP(drop_core) struct core *other = restored(f, &taken);
        size_t before = told;

        assert_true(steps < 20);
        decide(f);
        core_decide(other, f->now_ns, &decisions);
        assert_int_equal(decisions.count, f->decisions.count);
        assert_true(f->decisions.count <= 65 + GPUS);
        told = 0;
        for (uint64_t id = first; id < first + 500; id++) {
            const struct job *job = core_find_job(f->core, id);
            told += !job || !job_is_kept(job);
        }
        assert_true(told - before <= 220);
        if (told < 500)
            assert_true(core_next_wake_ns(f->core, f->now_ns) <= f->now_ns + NS_PER_MS);
        f->now_ns += NS_PER_MS;
        record_list_release(&taken);
        record_list_release(&decisions);
    }
}

/* ---- Which GPUs suit a job ---- */

static const struct {
    const char *name;
    uint32_t compute;
    int64_t bytes;
} kinds[GPUS] = {{"NVIDIA A100-SXM4-40GB", 80, 40352 * MIB},
                 {"NVIDIA GeForce RTX 4090", 89, 24080 * MIB},
                 {"NVIDIA H100 80GB HBM3", 90, 81079 * MIB},
                 {"", 0, 0}}; /* known by its UUID alone */

static void of_several_kinds(struct fixture *f)
{
    for (uint32_t g = 0; g < GPUS; g++) {
        struct record record = {.type = RECORD_GPU_BACK, .gpu = {.gpu = g, .share = SHARE_AUTO}};
        snprintf(record.gpu.name, sizeof record.gpu.name, "%s", kinds[g].name);
        record.gpu.compute = kinds[g].compute;
        record.gpu.total_bytes = kinds[g].bytes ? kinds[g].bytes : TOTAL;
        apply(f, record);
    }
}

/* `suits`: a digit for each GPU; NULL: it is no type. */
static const struct {
    const char *type, *suits;
} types[] = {{"a100", "0"},
             {"A100-SXM4", "0"},
             {"a10", ""}, /* is another */
             {"rtx 4090", "1"},
             {"GeForce_RTX_4090", "1"},
             {"80gb", "2"},
             {"nvidia", "012"},
             {"sm_80", "0"},
             {">=sm_89", "12"},
             {"<sm_90", "01"},
             {">sm_90", ""},
             {"sm_90a", "2"},
             {">=40G", "023"}, /* the driver keeps some of it; of the last the memory is known */
             {">=24G", "0123"},
             {"<40G", "1"},
             {">40G", "2"},
             {"<=40960M", "013"},
             {"a100|h100", "02"},
             {"nvidia&>=sm_89&<80G", "1"},
             {"v100|nvidia&sm_80|h100", "02"},
             {"", NULL},
             {"a100&", NULL},
             {"|h100", NULL},
             {">=", NULL},
             {">=40", NULL},
             {">=a100", NULL},
             {"sm_8", NULL},
             {"sm_x", NULL},
             {"a word that is far too long to be a part of the name of any GPU there is", NULL}};

CORE_EACH_ROW(test_types, types)
{
    struct record_submitted wants = {.gpus = 1};
    char suits[GPUS + 1] = "";
    struct error err;

    of_several_kinds(f);
    assert_int_equal(gpu_type_check(row->type, &err), row->suits ? 0 : -EINVAL);
    if (!row->suits)
        return;
    snprintf(wants.gpu_type, sizeof wants.gpu_type, "%s", row->type);
    for (uint32_t g = 0; g < GPUS; g++)
        if (gpu_suits(&wants, core_gpu(f->core, g)))
            suits[strlen(suits)] = (char)('0' + g);
    if (strcmp(suits, row->suits) != 0)
        fail_msg("%s suits %s, not %s", row->type, suits, row->suits);
}

CORE_TEST_AFTER(of_several_kinds, test_a_job_gets_only_gpus_that_suit_it)
{
    struct record record = wants(1, 8 * GIB);
    const char *but = "2 GPUs needed of those of --gpu-type h100, --exclude-gpu 0, the node has 1: its GPUs are "
                      "1 x NVIDIA A100-SXM4-40GB (39.4 GiB, sm_80), 1 x NVIDIA GeForce RTX 4090 (23.5 GiB, sm_89), "
                      "1 x NVIDIA H100 80GB HBM3 (79.2 GiB, sm_90), 1 x ";

    snprintf(record.submitted.gpu_type, sizeof record.submitted.gpu_type, "h100");
    record.submitted.exclusive = true;
    change(f, backfill, 1);
    uint64_t first = submit_record(f, record), second = submit_record(f, record);
    decide(f);
    assert_string_equal(placed_on(f, first), "2");
    assert_reason(f, second, "1 idle GPU needed, 0 are idle; --gpu-type h100 leaves 1 of 4 GPUs");
    record.submitted.excluded_gpus = 5;
    assert_never(f, &record.submitted, NULL); /* the last may be one */
    apply(f, (struct record){.type = RECORD_GPU_BACK,
                             .gpu = {.gpu = 3, .total_bytes = TOTAL, .name = "NVIDIA L4", .compute = 89}});
    record.submitted.excluded_gpus = 1;
    record.submitted.gpus = 2;
    struct reason why;
    char text[REASON_TEXT];
    assert_false(core_could_ever_run(f->core, &record.submitted, &why));
    assert_int_equal(strncmp(reason_format(&why, 0, text), but, strlen(but)), 0);
    record.submitted.gpus = 1;
    record.submitted.excluded_gpus = 7;
    memset(record.submitted.gpu_type, 0, sizeof record.submitted.gpu_type);
    uint64_t other = submit_record(f, record);
    decide(f);
    assert_string_equal(placed_on(f, other), "3");
}
