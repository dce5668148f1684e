/* The consequences of a job's end (src/core/crash.h). */
#include "core_fixture.h"
#include "core/crash.h"
#include "core/verdict.h"

/* core/verdict.h: what the evidence makes of an end. */
TEST(test_verdicts)
{
    enum {
        SAID = EVIDENCE_OUTPUT,
        FILED = EVIDENCE_FILE,
        STEPS = EVIDENCE_STEPS,
        ITSELF = EVIDENCE_ITSELF,
        FENCE = EVIDENCE_FENCE,
        LIMIT = EVIDENCE_LIMITED,
        OWN = EVIDENCE_OWN,
        SERVER = EVIDENCE_SERVER,
        FULL = EVIDENCE_FULL
    };
    static const struct {
        uint32_t ends, evidence, cause;
        enum verdict_teaches teaches;
        bool caught;
        int32_t status;
    } rows[] = {
        {EXIT_COMPLETED, 0, EXIT_COMPLETED, TEACHES_THIS, false},
        {EXIT_COMPLETED, ITSELF | LIMIT, EXIT_COMPLETED, TEACHES_THIS, false}, /* nothing was said */
        {EXIT_COMPLETED, FENCE, EXIT_COMPLETED, TEACHES_MORE, false},
        {EXIT_COMPLETED, SAID | LIMIT, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_COMPLETED, FILED | LIMIT | FENCE, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_COMPLETED, SAID, EXIT_COMPLETED, TEACHES_MORE, true},
        {EXIT_COMPLETED, SAID | LIMIT | STEPS, EXIT_COMPLETED, TEACHES_MORE, true},
        {EXIT_COMPLETED, SAID | LIMIT | ITSELF, EXIT_COMPLETED, TEACHES_MORE, true},
        {EXIT_GPU_OOM, 0, EXIT_GPU_OOM, TEACHES_MORE, false}, /* of an earlier carma, too */
        {EXIT_GPU_OOM, SAID | LIMIT | ITSELF, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_GPU_OOM, SAID | LIMIT | STEPS, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_GPU_HANDLE, SAID, EXIT_GPU_HANDLE, TEACHES_MORE, false},
        {EXIT_FAILED, LIMIT | ITSELF, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_FAILED, FENCE | LIMIT, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_FAILED, FENCE | LIMIT | OWN, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_FAILED, FILED, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_FAILED, FILED | FENCE | STEPS, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_SIGNALLED, FILED, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_SIGNALLED, FENCE | LIMIT, EXIT_SIGNALLED, TEACHES_NOTHING, false},
        {EXIT_SIGNALLED, FENCE, EXIT_GPU_OOM, TEACHES_MORE, false, 128 + SIGABRT}, /* by its own will */
        {EXIT_SIGNALLED, FENCE, EXIT_SIGNALLED, TEACHES_NOTHING, false, 128 + SIGSEGV},
        {EXIT_FAILED, FENCE, EXIT_FAILED, TEACHES_NOTHING, false, 128 + SIGKILL}, /* a shell tells */
        {EXIT_FAILED, SERVER, EXIT_GPU_OOM, TEACHES_MORE, false},
        {EXIT_FAILED, SERVER | OWN, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_FAILED, SERVER | SAID | STEPS, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_SIGNALLED, SERVER | FULL, EXIT_SIGNALLED, TEACHES_NOTHING, false},
        {EXIT_COMPLETED, SERVER, EXIT_COMPLETED, TEACHES_MORE, false},
        {EXIT_FAILED, FULL, EXIT_GPU_OOM, TEACHES_NOTHING, false}, /* doubtful */
        {EXIT_FAILED, FULL | OWN, EXIT_FAILED, TEACHES_NOTHING, false},
        {EXIT_COMPLETED, FULL, EXIT_COMPLETED, TEACHES_THIS, false},
        {EXIT_TIMEOUT, SAID | LIMIT | FENCE, EXIT_TIMEOUT, TEACHES_NOTHING, false},
        {EXIT_IDLE, SAID | LIMIT | FENCE, EXIT_IDLE, TEACHES_NOTHING, false},
        {EXIT_HOST_OOM, SAID | LIMIT | FENCE, EXIT_HOST_OOM, TEACHES_NOTHING, false},
        {EXIT_GPU_ERROR, SAID | LIMIT | FENCE, EXIT_GPU_ERROR, TEACHES_NOTHING, false},
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        struct record_exited exited = {.cause = rows[i].ends, .status = rows[i].status, .evidence = rows[i].evidence};
        struct verdict verdict = verdict_of(&exited);
        if (verdict.cause != rows[i].cause || verdict.teaches != rows[i].teaches || verdict.caught != rows[i].caught)
            fail_msg("row %zu: %s", i, exit_cause_name(verdict.cause));
        exited.cause = verdict.cause; /* as it is shown: it stays so */
        assert_int_equal(verdict_of(&exited).cause, rows[i].cause);
    }
}

/* On GPU 0, with this much memory observed of it, for this long. */
static uint64_t running(struct fixture *f, int64_t seen_bytes, int64_t for_ns)
{
    uint64_t job = submit(f, 1, 8 * GIB);

    decide(f);
    job_event(f, RECORD_STARTED, job);
    if (seen_bytes)
        memory_observed(f, job, core_find_job(f->core, job)->placements[0].gpu, seen_bytes);
    f->now_ns += for_ns;
    return job;
}

static const struct record *ends_as(struct fixture *f, uint64_t job, struct record_exited exited)
{
    exited.status = 1;
    exited.free_bytes = -1;
    apply(f, (struct record){.type = RECORD_EXITED, .job = job, .exited = exited});
    decide(f);
    return f->decisions.count ? &f->decisions.items[0] : NULL;
}

static const struct record *ends(struct fixture *f, uint64_t job, uint32_t cause, int64_t requested, int64_t used)
{
    return ends_as(f, job, (struct record_exited){cause, 0, requested, 0, used, RECORD_NO_GPU});
}

static const struct {
    int64_t seen, for_ns, requested, used;
    bool oom_crashes;
} messages[] = {
    {4 * GIB, SECONDS(600), 2 * GIB, 38 * GIB, true},      /* nearly full */
    {4 * GIB, SECONDS(600), 2 * GIB, 28 * GIB, true},      /* a quarter may have come since the last sample */
    {4 * GIB, SECONDS(600), 2 * GIB, 28 * GIB - 1, false}, /* ... but no more */
    {4 * GIB, SECONDS(600), -1, 30 * GIB, true},
    {4 * GIB, SECONDS(600), -1, 20 * GIB, false},
    {31 * GIB, SECONDS(600), -1, 20 * GIB, true},     /* it was itself seen to hold more */
    {4 * GIB, SECONDS(600), 41 * GIB, 4 * GIB, true}, /* more than the GPU has */
    {4 * GIB, SECONDS(60), 2 * GIB, 4 * GIB, true},   /* while it loads, the first time */
    {4 * GIB, SECONDS(61), 2 * GIB, 4 * GIB, false},
    {0, SECONDS(600), GIB, 3 * GIB, true},     /* its memory appeared and it crashed between two samples */
    {0, SECONDS(1), GIB, 300 * MIB, false},    /* nobody's memory was there */
    {4 * GIB, SECONDS(600), 2 * GIB, -1, true} /* nothing was observed */
};

CORE_EACH_ROW(test_a_message_is_believed_where_memory_bears_it_out, messages)
{
    uint64_t job = running(f, row->seen, row->for_ns);
    const struct record *verdict = ends(f, job, EXIT_GPU_OOM, row->requested, row->used);
    if (row->requested > TOTAL) {
        assert_int_equal(verdict->type, RECORD_GAVE_UP); /* at once */
        assert_true(verdict->gave_up.memory);
    } else {
        assert_requeued(verdict, row->oom_crashes, 1, verdict->requeued.reserved_bytes);
    }
}

/* A full GPU speaks for a job that had memory there, beside others. */
static const struct {
    int64_t seen, others, used;
    bool full;
} a_full_gpu_is_evidence_where_it_is_shared[] = {
    {4 * GIB, 35 * GIB, TOTAL - TOTAL / 32, true},
    {4 * GIB, 35 * GIB, TOTAL - TOTAL / 32 - 1, false},
    {0, 35 * GIB, TOTAL, false},
    {39 * GIB, 0, TOTAL, false},
    {4 * GIB, 35 * GIB, -1, false},
};

CORE_EACH_ROW(test_a_full_gpu_is_evidence_where_it_is_shared, a_full_gpu_is_evidence_where_it_is_shared)
{
    uint64_t job = running(f, row->seen, SECONDS(60));
    const struct job *of = core_find_job(f->core, job);
    struct record end = {.type = RECORD_EXITED, .exited = {.cause = EXIT_FAILED, .used_bytes = row->used}};
    sample(f, of->placements[0].gpu, row->seen + row->others, row->others, 0);
    assert_int_equal(crash_is_of_full_gpu(f->core, of, &end), row->full);
}

/* A larger GPU is there, or was exchanged for one like the others. */
CORE_TEST(test_a_retry_asks_for_no_more_than_a_gpu_has)
{
    change(f, oom_retry, OOM_RETRY_INFORMED);
    for (uint32_t lost = 0; lost < 2; lost++) {
        uint64_t job = submit(f, 1, 28 * GIB);
        decide(f);
        job_event(f, RECORD_STARTED, job);
        memory_observed(f, job, core_find_job(f->core, job)->placements[0].gpu, 28 * GIB);
        apply(f, (struct record){.type = lost ? RECORD_GPU_LOST : RECORD_GPU_BACK,
                                 .gpu = {.gpu = GPUS, .uuid = "GPU-large", .total_bytes = 2 * TOTAL}});
        assert_requeued(ends(f, job, EXIT_GPU_OOM, 2 * GIB, 38 * GIB), true, 1, lost ? TOTAL : 56 * GIB);
        job_event(f, RECORD_CANCELLED, job);
    }
}

CORE_TEST(test_who_is_not_believed_waits_in_turn_and_not_for_ever)
{
    const struct record *verdict;
    uint64_t job = running(f, 4 * GIB, SECONDS(600));

    for (uint32_t crash = 1; crash <= core_configuration(f->core)->max_retries; crash++) {
        verdict = ends(f, job, EXIT_GPU_OOM, GIB, 5 * GIB);
        assert_requeued(verdict, false, crash, 8 * GIB); /* nothing was proved */
        assert_false(core_find_job(f->core, job)->retry);
        memory_observed(f, job, 0, 4 * GIB);
        f->now_ns += SECONDS(600);
    }
    assert_gave_up(ends(f, job, EXIT_GPU_OOM, GIB, 5 * GIB), JOB_FAILED);
}

CORE_TEST(test_loading_is_an_excuse_once)
{
    uint64_t job = running(f, 4 * GIB, SECONDS(5)), other;

    assert_true(ends(f, job, EXIT_GPU_OOM, GIB, 5 * GIB)->requeued.retry);
    other = submit(f, 1, GIB); /* so that it is not alone, which would end it */
    memory_observed(f, job, 0, 4 * GIB);
    f->now_ns += SECONDS(31);
    for (uint32_t g = 1; g < GPUS; g++)
        sample(f, g, 39 * GIB, 39 * GIB, 0);
    assert_goes_to(f, other, "0");
    assert_false(ends(f, job, EXIT_GPU_OOM, GIB, 5 * GIB)->requeued.retry);
}

CORE_TEST(test_a_handle_needs_memory_to_speak_for_it)
{
    const struct record *verdict = ends(f, running(f, 4 * GIB, SECONDS(600)), EXIT_GPU_HANDLE, -1, 36 * GIB);

    assert_true(verdict->requeued.retry);
    for (int64_t used = -1; used <= 10 * GIB; used += 5 * GIB + 1) {
        verdict = ends(f, running(f, 4 * GIB, SECONDS(5)), EXIT_GPU_HANDLE, -1, used);
        assert_gave_up(verdict, JOB_FAILED);
    }
}

/* A crashed job waits for more memory than any GPU has free; smaller ones go meanwhile. It starts once one has it. */
CORE_TEST(test_others_go_on_around_a_retrying_job)
{
    uint64_t others[GPUS], crashed, small;

    configure(f, "magm", MEMORY_RESERVE);
    change(f, oom_retry, OOM_RETRY_INFORMED);
    change(f, backfill, 8);
    change(f, starvation_timeout_ns, SECONDS(1800));
    for (uint32_t i = 0; i < GPUS; i++)
        others[i] = submit(f, 1, 28 * GIB);
    decide(f);
    crashed = running(f, 8 * GIB, SECONDS(120)); /* beside one of them */
    ends(f, crashed, EXIT_GPU_OOM, 12 * GIB, 39 * GIB);
    assert_string_equal(placed_on(f, crashed), "");
    assert_true(core_find_job(f->core, crashed)->retry);
    small = submit(f, 1, 4 * GIB);
    assert_starts(f, small);
    assert_string_equal(placed_on(f, crashed), "");
    exits(f, others[3], EXIT_COMPLETED, -1);
    assert_goes_to(f, crashed, "3");
}

CORE_TEST(test_victims_go_first_with_their_reservations)
{
    static const uint32_t causes[] = {EXIT_MPS_FAULT, EXIT_GPU_ERROR};

    change(f, max_retries, 2);
    keep_gpus(f, 1);
    uint64_t before = submit(f, 1, GIB);
    job_event(f, RECORD_HELD, before);
    uint64_t job = running(f, 4 * GIB, SECONDS(600));
    for (uint32_t i = 0; i < 2; i++) {
        const struct record *verdict = ends(f, job, causes[i], -1, 10 * GIB);
        assert_requeued(verdict, true, 0, 8 * GIB);
        assert_string_equal(placed_on(f, job), "0");
        if (i == 0) { /* it is no reason to be left alone, or to wait for its memory to settle */
            job_event(f, RECORD_RELEASED, before);
            assert_goes_to(f, before, "0");
        }
        memory_observed(f, job, 0, 4 * GIB);
    }
    assert_gave_up(ends(f, job, EXIT_MPS_FAULT, -1, -1), JOB_FAILED);
}

static uint64_t of_workload(struct fixture *f, const char *workload)
{
    submit_of(f, workload, 8 * GIB);
    decide(f);
    return f->last_job;
}

/* Ends as its stated GPU failed; the type of the consequence. */
static uint32_t fails_gpu(struct fixture *f, uint64_t job, uint32_t gpu)
{
    f->now_ns += NS_PER_SEC;
    return ends_as(f, job, (struct record_exited){EXIT_GPU_ERROR, 0, -1, 0, -1, gpu})->type;
}

static const char *const who_fails_two_gpus_is_charged_with_them[] = {"", "w"};

CORE_EACH_ROW(test_who_fails_two_gpus_is_charged_with_them, who_fails_two_gpus_is_charged_with_them)
{
    uint64_t job = of_workload(f, *row);
    assert_int_equal(fails_gpu(f, job, 1), RECORD_REQUEUED);
    assert_int_equal(fails_gpu(f, job, 1), RECORD_REQUEUED); /* the same again */
    assert_int_equal(fails_gpu(f, job, RECORD_NO_GPU), RECORD_REQUEUED);
    assert_int_equal(fails_gpu(f, job, 2), RECORD_GAVE_UP);
    assert_int_equal(job_state_after(JOB_CRASHED, &f->decisions.items[0]), JOB_FAILED);
}

CORE_TEST(test_gpus_that_fail_together_charge_nobody)
{
    uint64_t one = of_workload(f, "w"), two = of_workload(f, "w"), other = of_workload(f, "v");
    struct record record = {.type = RECORD_EXITED, .job = one, .exited = {EXIT_GPU_ERROR, .failed_gpu = GPUS}};

    assert_int_equal(core_apply(f->core, &record, &trouble), -EINVAL); /* one that is not there cannot have failed */
    assert_int_equal(fails_gpu(f, one, 0), RECORD_REQUEUED);
    assert_int_equal(fails_gpu(f, other, 3), RECORD_REQUEUED); /* another workload's */
    assert_int_equal(fails_gpu(f, two, 1), RECORD_REQUEUED);   /* began before the first failure */
    f->now_ns += NS_PER_SEC;
    exits(f, one, EXIT_COMPLETED, -1); /* which shows that the workload does not fail GPUs */
    assert_int_equal(fails_gpu(f, two, 2), RECORD_REQUEUED);
    assert_int_equal(fails_gpu(f, two, 3), RECORD_GAVE_UP);
}

CORE_TEST(test_faults_and_want_of_memory_are_counted_apart)
{
    uint64_t job = running(f, 4 * GIB, SECONDS(600));

    change(f, max_retries, 1);
    assert_int_equal(ends(f, job, EXIT_MPS_FAULT, -1, -1)->type, RECORD_REQUEUED);
    assert_int_equal(ends(f, job, EXIT_GPU_OOM, -1, -1)->type, RECORD_REQUEUED);
    assert_int_equal(f->decisions.items[0].requeued.crashes, 1);
}

static const uint32_t what_was_its_own_is_not_tried_again[] = {EXIT_FAILED, EXIT_SIGNALLED, EXIT_HOST_OOM};

CORE_EACH_ROW(test_what_was_its_own_is_not_tried_again, what_was_its_own_is_not_tried_again)
{
    assert_null(ends(f, running(f, 4 * GIB, SECONDS(5)), *row, -1, 39 * GIB));
    assert_int_equal(core_job_count(f->core), 0);
}

static uint64_t running_with_requeue(struct fixture *f, bool requeue)
{
    struct record record = wants(1, 8 * GIB);

    record.submitted.requeue = requeue;
    submit_record(f, record);
    decide(f);
    job_event(f, RECORD_STARTED, f->last_job);
    return f->last_job;
}

CORE_TEST(test_a_time_limit_is_followed_by_another_run_where_asked_for)
{
    uint64_t job = running_with_requeue(f, false);

    assert_gave_up(ends(f, job, EXIT_TIMEOUT, -1, -1), JOB_TIMEOUT);
    assert_int_equal(f->decisions.items[0].gave_up.cause, EXIT_TIMEOUT);
    change(f, max_requeues, 2);
    job = running_with_requeue(f, true);
    for (int run = 0; run < 2; run++) {
        assert_requeued(ends(f, job, EXIT_TIMEOUT, -1, -1), false, 0, 8 * GIB);
        assert_string_not_equal(placed_on(f, job), "");
        job_event(f, RECORD_STARTED, job);
    }
    assert_gave_up(ends(f, job, EXIT_TIMEOUT, -1, -1), JOB_TIMEOUT);
    assert_int_equal(core_job_count(f->core), 0);
}

/* Of a limit of 1,000 s: what is decided when, as it is told since when the job does not use its GPU. */
static const struct {
    int64_t later_s, unused_s; /* 0: it uses it; -1: nothing is told */
    uint32_t step;             /* 0: none */
    int64_t left_s;
} of_idle_limit[] = {{400, 300, 0, 0},
                     {200, -1, IDLE_WARNED, 500},
                     {400, -1, IDLE_WARNED_AGAIN, 100},
                     {99, -1, 0, 0},
                     {0, 0, 0, 0},
                     {2000, -1, 0, 0},
                     {0, 1900, IDLE_WARNED, 500}, /* as much as in time */
                     {399, -1, 0, 0},
                     {51, -1, IDLE_WARNED_AGAIN, 100},
                     {99, -1, 0, 0},
                     {1, -1, IDLE_ENDED, 0},
                     {0, 0, 0, 0},
                     {900, 900, 0, 0}};

CORE_TEST(test_a_job_that_does_not_use_its_gpus_is_warned_twice_and_ended)
{
    struct record submitted = wants(1, 8 * GIB);

    submitted.submitted.idle_limit_ns = SECONDS(1000);
    submitted.submitted.requeue = true;
    uint64_t job = submit_record(f, submitted);
    decide(f);
    job_event(f, RECORD_STARTED, job);
    for (size_t i = 0; i < array_size(of_idle_limit); i++) {
        int64_t unused_s = of_idle_limit[i].unused_s, later_s = of_idle_limit[i].later_s;
        int64_t wake_ns = core_next_wake_ns(f->core, f->now_ns);
        f->now_ns += SECONDS(later_s);
        assert_true(unused_s >= 0 || !of_idle_limit[i].step || wake_ns <= f->now_ns);
        if (unused_s >= 0)
            apply(f, (struct record){.type = RECORD_UNUSED,
                                     .job = job,
                                     .unused = {.since_ns = unused_s ? f->now_ns - SECONDS(unused_s) : 0}});
        const struct record *idle = decided(f, RECORD_IDLE, job);
        assert_int_equal(idle ? idle->idle.step : 0, of_idle_limit[i].step);
        assert_true(!idle || idle->idle.ends_ns == f->now_ns + SECONDS(of_idle_limit[i].left_s));
    }
    assert_gave_up(ends(f, job, EXIT_IDLE, -1, -1), JOB_TIMEOUT); /* nor is it started again */
}

/* Submits a job that wants the node to itself, and looks at the decision. */
static uint64_t submit_whole(struct fixture *f, bool held)
{
    struct record record = wants(GPUS, 8 * GIB);

    record.submitted.exclusive = record.submitted.requeue = true;
    record.submitted.held = held;
    submit_record(f, record);
    decide(f);
    return f->last_job;
}

/* The next job that has the node to itself, once the present one ended so. */
static uint64_t next_after(struct fixture *f, uint64_t job, uint32_t cause)
{
    job_event(f, RECORD_STARTED, job);
    if (cause == EXIT_LOST)
        job_event(f, RECORD_LOST, job);
    else
        exits(f, job, cause, -1);
    decide(f);
    for (uint64_t next = 1; next <= f->last_job; next++)
        if (*placed_on(f, next))
            return next;
    return 0;
}

/* A job at its time limit goes on after all who waited by then, held ones too; where nobody waits, at once. */
CORE_TEST(test_a_time_slot_ends_at_the_end_of_the_queue)
{
    uint64_t first = submit_whole(f, false), second = submit_whole(f, false), held = submit_whole(f, true), last;

    assert_string_equal(placed_on(f, first), "");
    assert_int_equal(next_after(f, first, EXIT_TIMEOUT), second);
    last = submit_whole(f, false);
    job_event(f, RECORD_RELEASED, held);
    assert_int_equal(next_after(f, second, EXIT_TIMEOUT), held);
    job_event(f, RECORD_HELD, first); /* which keeps its place */
    job_event(f, RECORD_RELEASED, first);
    assert_int_equal(next_after(f, held, EXIT_COMPLETED), first);
    assert_int_equal(next_after(f, first, EXIT_LOST), first); /* its turn was not over */
    assert_int_equal(next_after(f, first, EXIT_COMPLETED), last);
    assert_int_equal(next_after(f, last, EXIT_COMPLETED), second);
    assert_int_equal(next_after(f, second, EXIT_TIMEOUT), second);
}

static const struct record *is_lost(struct fixture *f, uint64_t job)
{
    job_event(f, RECORD_LOST, job);
    decide(f);
    return f->decisions.count ? &f->decisions.items[0] : NULL;
}

CORE_TEST(test_a_lost_job_is_tried_again_where_asked_for)
{
    struct core_config config = *core_configuration(f->core);
    const struct record *verdict = is_lost(f, running_with_requeue(f, false));

    assert_gave_up(verdict, JOB_LOST);
    uint64_t job = running_with_requeue(f, true);
    for (uint32_t loss = 0; loss < config.max_retries; loss++) {
        assert_requeued(is_lost(f, job), false, 0, 8 * GIB);
        job_event(f, RECORD_STARTED, job);
    }
    assert_int_equal(is_lost(f, job)->type, RECORD_GAVE_UP);
    change(f, requeue_lost, true);
    job = running_with_requeue(f, false);
    assert_int_equal(is_lost(f, job)->type, RECORD_REQUEUED);
    assert_int_equal(ends(f, job, EXIT_TIMEOUT, -1, -1)->type, RECORD_GAVE_UP); /* which it did not ask for */
    assert_int_equal(core_job_count(f->core), 0);
    /* As an earlier carma stored it: nothing was decided after it. */
    apply(f, (struct record){.type = RECORD_LOST, .job = running_with_requeue(f, true), .lost = {.final = true}});
    assert_int_equal(core_job_count(f->core), 0);
}
