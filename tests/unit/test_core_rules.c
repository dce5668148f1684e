/* Each rule of the core by an example of its own, at its edge. What must hold in every world is in tests/property. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/core.h"
#include "core/job.h"
#include "core/reason.h"

#define GPU_BYTES (40 * GIB)

static struct core *core;
static struct core_config config;
static int64_t now_ns;

static int apply(const struct record *record)
{
    struct record at = *record;

    at.at_ns = now_ns;
    return core_apply(core, &at, NULL);
}

static void must_apply(const struct record *record)
{
    assert_int_equal(apply(record), 0);
}

static void configure(void)
{
    must_apply(&(struct record){.type = RECORD_RECONFIGURED, .config = config});
}

static void sample(uint32_t gpu, int64_t used_bytes, int64_t foreign_bytes, int32_t smact_permille)
{
    must_apply(&(struct record){.type = RECORD_SAMPLE, .sample = {gpu, used_bytes, foreign_bytes, smact_permille}});
}

static void add_gpu(uint32_t gpu)
{
    struct record back = {.type = RECORD_GPU_BACK, .gpu = {.gpu = gpu, .total_bytes = GPU_BYTES}};

    snprintf(back.gpu.uuid, sizeof back.gpu.uuid, "GPU-%u", gpu);
    must_apply(&back);
    sample(gpu, 0, 0, 0);
}

/* A node of `gpus` idle GPUs without margins, periods or waits: each test turns on what it is about. */
static void start(const char *policy, uint32_t memory_view, uint32_t gpus)
{
    core_free(core);
    core = core_new();
    now_ns = 1000 * NS_PER_SEC;
    core_config_default(&config);
    snprintf(config.policy, sizeof config.policy, "%s", policy);
    config.memory_view = memory_view;
    config.margin_bytes = 0;
    config.decide_period_ns = 0;
    config.settle_ns = 0;
    configure();
    for (uint32_t i = 0; i < gpus; i++)
        add_gpu(i);
}

static int stop(void **state)
{
    core_free(core);
    core = NULL;
    return 0;
}

static void submit(uint64_t job, int64_t claim_bytes)
{
    must_apply(&(struct record){.type = RECORD_SUBMITTED,
                                .job = job,
                                .submitted = {.gpus = 1, .claim_bytes = claim_bytes, .smact_permille = -1}});
}

static void decide(void)
{
    struct record_list out = {0};

    core_decide(core, now_ns, &out);
    record_list_release(&out);
}

static uint32_t state_of(uint64_t job)
{
    const struct job *found = core_find_job(core, job);

    return found ? found->state : JOB_STATE_COUNT;
}

static void must_be_placed(uint64_t job, uint32_t gpu)
{
    decide();
    assert_int_equal(state_of(job), JOB_PLACED);
    assert_int_equal(core_find_job(core, job)->placements[0].gpu, gpu);
}

static struct reason must_wait(uint64_t job, uint32_t code)
{
    struct reason reason;

    decide();
    assert_int_equal(state_of(job), JOB_QUEUED);
    reason = core_reason(core, job, now_ns);
    assert_string_equal(reason_name(reason.code), reason_name(code));
    return reason;
}

static void run(uint64_t job)
{
    must_apply(&(struct record){.type = RECORD_STARTED, .job = job});
}

static void end(uint64_t job, uint32_t cause, int64_t requested_bytes)
{
    must_apply(&(struct record){
        .type = RECORD_EXITED,
        .job = job,
        .exited = {
            .cause = cause, .status = cause != EXIT_COMPLETED, .requested_bytes = requested_bytes, .free_bytes = -1}});
}

/* Places a job that runs, with nothing else in the queue. */
static void resident(uint64_t job, int64_t claim_bytes, uint32_t gpu)
{
    submit(job, claim_bytes);
    must_be_placed(job, gpu);
    run(job);
}

static void transitions_are_those_of_a_jobs_life(void **state)
{
    static const char *const allowed[] = {
        "HELD QUEUED",     "HELD CANCELLED",    "QUEUED HELD",        "QUEUED PLACED",   "QUEUED CANCELLED",
        "QUEUED REFUSED",  "PLACED RUNNING",    "PLACED STOPPING",    "PLACED CRASHED",  "PLACED COMPLETED",
        "PLACED FAILED",   "PLACED LOST",       "RUNNING STOPPING",   "RUNNING CRASHED", "RUNNING COMPLETED",
        "RUNNING FAILED",  "RUNNING LOST",      "STOPPING CANCELLED", "STOPPING LOST",   "CRASHED QUEUED",
        "CRASHED GPU_OOM", "CRASHED CANCELLED",
    };

    for (uint32_t from = 0; from <= JOB_STATE_COUNT; from++) {
        for (uint32_t to = 0; to <= JOB_STATE_COUNT; to++) {
            char pair[64];
            bool expected = false;
            snprintf(pair, sizeof pair, "%s %s", job_state_name(from), job_state_name(to));
            for (size_t i = 0; i < array_size(allowed); i++)
                expected |= strcmp(allowed[i], pair) == 0;
            if (job_transition_allowed(from, to) != expected)
                fail_msg("%s: expected %s", pair, expected ? "allowed" : "refused");
        }
    }
}

static void a_running_job_cannot_be_held(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, GIB, 0);
    assert_int_equal(apply(&(struct record){.type = RECORD_HELD, .job = 1}), -EPERM);
    assert_int_equal(state_of(1), JOB_RUNNING);
}

static void reservations_leave_the_margin(void **state)
{
    struct reason reason;

    start("magm", MEMORY_RESERVE, 1);
    config.margin_bytes = 2 * GIB;
    configure();
    resident(1, 20 * GIB, 0);
    submit(2, 18 * GIB + 1);
    reason = must_wait(2, REASON_MEMORY);
    assert_int_equal(reason.best_bytes, 18 * GIB);
    assert_int_equal(reason.needed_bytes, 18 * GIB + 1);
    must_apply(&(struct record){.type = RECORD_CANCELLED, .job = 2});
    submit(3, 18 * GIB);
    must_be_placed(3, 0);
}

static void reservations_leave_foreign_memory(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, 20 * GIB, 0);
    sample(0, 24 * GIB, 4 * GIB, 0);
    submit(2, 16 * GIB + 1);
    must_wait(2, REASON_MEMORY);
    must_apply(&(struct record){.type = RECORD_CANCELLED, .job = 2});
    submit(3, 16 * GIB);
    must_be_placed(3, 0);
}

static void reservations_count_what_a_job_really_uses(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, 20 * GIB, 0);
    must_apply(&(struct record){.type = RECORD_FIRST_USE, .job = 1, .memory = {0, 25 * GIB}});
    submit(2, 15 * GIB + 1);
    must_wait(2, REASON_MEMORY);
    must_apply(&(struct record){.type = RECORD_CANCELLED, .job = 2});
    submit(3, 15 * GIB);
    must_be_placed(3, 0);
}

static void the_monitor_view_leaves_the_margin(void **state)
{
    start("magm", MEMORY_MONITOR, 1);
    config.margin_bytes = 2 * GIB;
    configure();
    resident(1, 20 * GIB, 0);
    sample(0, 22 * GIB, 0, 0);
    submit(2, 16 * GIB + 1);
    must_wait(2, REASON_MEMORY);
    must_apply(&(struct record){.type = RECORD_CANCELLED, .job = 2});
    submit(3, 16 * GIB);
    must_be_placed(3, 0);
}

static void the_floor_stands_in_for_a_claim(void **state)
{
    start("magm", MEMORY_MONITOR, 1);
    config.floor_bytes = 5 * GIB;
    configure();
    resident(1, -1, 0);
    sample(0, 35 * GIB + 1, 0, 0);
    submit(2, -1);
    must_wait(2, REASON_MEMORY);
    sample(0, 35 * GIB, 0, 0);
    must_be_placed(2, 0);
}

static void a_gpu_is_closed_until_new_memory_has_settled(void **state)
{
    start("magm", MEMORY_MONITOR, 1);
    config.settle_ns = 30 * NS_PER_SEC;
    configure();
    resident(1, GIB, 0);
    submit(2, GIB);
    must_wait(2, REASON_SETTLING);
    now_ns += 10 * NS_PER_SEC;
    must_apply(&(struct record){.type = RECORD_FIRST_USE, .job = 1, .memory = {0, GIB}});
    now_ns += 30 * NS_PER_SEC - 1;
    must_wait(2, REASON_SETTLING);
    assert_int_equal(core_next_wake_ns(core, now_ns), now_ns + 1);
    now_ns++;
    must_be_placed(2, 0);
}

static void busy_gpus_are_not_shared(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, GIB, 0);
    sample(0, GIB, 0, 801);
    submit(2, GIB);
    must_wait(2, REASON_SM_ACTIVITY);
    sample(0, GIB, 0, 800);
    must_be_placed(2, 0);
}

static void a_gpu_runs_so_many_jobs(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    config.max_jobs_per_gpu = 2;
    configure();
    resident(1, GIB, 0);
    resident(2, GIB, 0);
    submit(3, GIB);
    must_wait(3, REASON_FULL);
    end(1, EXIT_COMPLETED, -1);
    must_be_placed(3, 0);
}

static void the_queue_is_first_come_first_served(void **state)
{
    start("exclusive", MEMORY_RESERVE, 1);
    for (uint64_t job = 1; job <= 4; job++)
        submit(job, GIB);
    must_apply(&(struct record){.type = RECORD_HELD, .job = 2});
    must_apply(&(struct record){.type = RECORD_RELEASED, .job = 2});
    for (uint64_t job = 1; job <= 4; job++) {
        must_be_placed(job, 0);
        run(job);
        if (job < 4)
            must_wait(job + 1, REASON_NO_IDLE_GPU);
        end(job, EXIT_COMPLETED, -1);
    }
}

static void a_recovering_job_goes_first_and_alone(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, 10 * GIB, 0);
    resident(2, 10 * GIB, 0);
    submit(3, 31 * GIB); /* does not fit beside any other */
    end(2, EXIT_GPU_OOM, -1);
    must_wait(2, REASON_NO_IDLE_GPU);
    must_wait(3, REASON_RECOVERY_FIRST);
    end(1, EXIT_COMPLETED, -1);
    must_be_placed(2, 0);
    assert_true(core_find_job(core, 2)->recovery);
    must_wait(3, REASON_MEMORY);
}

static void a_fitting_job_waits_for_the_recovering_one(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, 10 * GIB, 0);
    resident(2, 10 * GIB, 0);
    end(2, EXIT_GPU_OOM, -1);
    submit(3, GIB);
    must_wait(3, REASON_RECOVERY_FIRST);
}

static void a_job_is_recovered_so_often(void **state)
{
    for (uint32_t recoveries = 0; recoveries <= 1; recoveries++) {
        start("magm", MEMORY_RESERVE, 1);
        config.max_recoveries = recoveries;
        configure();
        resident(1, GIB, 0);
        resident(2, GIB, 0);
        end(2, EXIT_GPU_OOM, -1);
        decide();
        assert_int_equal(state_of(2), recoveries ? JOB_QUEUED : JOB_STATE_COUNT);
    }
}

static void a_crash_teaches_what_the_job_needs(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, 10 * GIB, 0);
    must_apply(&(struct record){.type = RECORD_FIRST_USE, .job = 1, .memory = {0, 12 * GIB}});
    end(1, EXIT_GPU_OOM, 3 * GIB);
    assert_int_equal(core_find_job(core, 1)->claim_bytes, 15 * GIB);
    must_be_placed(1, 0);
    run(1);
    must_apply(&(struct record){.type = RECORD_FIRST_USE, .job = 1, .memory = {0, 39 * GIB}});
    end(1, EXIT_GPU_OOM, 3 * GIB);
    assert_int_equal(core_find_job(core, 1)->claim_bytes, GPU_BYTES);
}

static void other_failures_are_not_recovered(void **state)
{
    start("magm", MEMORY_RESERVE, 1);
    resident(1, GIB, 0);
    end(1, EXIT_FAILED, -1);
    assert_int_equal(state_of(1), JOB_STATE_COUNT);
    resident(2, GIB, 0);
    end(2, EXIT_SIGNALLED, -1);
    assert_int_equal(state_of(2), JOB_STATE_COUNT);
}

/* Three GPUs with a resident each: GPU 0 least busy, GPU 1 most free, GPU 2 busiest; GPU 3 is idle. */
static void share_three_of_four(const char *policy)
{
    start("magm", MEMORY_MONITOR, 4);
    for (uint32_t i = 0; i < 3; i++)
        resident(i + 1, GIB, i);
    sample(0, 30 * GIB, 0, 100);
    sample(1, 10 * GIB, 0, 300);
    sample(2, 20 * GIB, 0, 500);
    snprintf(config.policy, sizeof config.policy, "%s", policy);
    configure();
}

static void idle_gpus_are_taken_first(void **state)
{
    static const char *const policies[] = {"exclusive", "round-robin", "magm", "lug"};

    for (size_t i = 0; i < array_size(policies); i++) {
        share_three_of_four(policies[i]);
        submit(4, GIB);
        must_be_placed(4, 3);
    }
}

static void mug_takes_the_busiest_and_leaves_idle_gpus(void **state)
{
    share_three_of_four("mug");
    submit(4, GIB);
    must_be_placed(4, 2);
}

static void each_sharing_policy_ranks_its_way(void **state)
{
    static const struct {
        const char *policy;
        uint32_t gpu;
    } cases[] = {{"magm", 1}, {"lug", 0}, {"mug", 2}};

    for (size_t i = 0; i < array_size(cases); i++) {
        share_three_of_four(cases[i].policy);
        must_apply(&(struct record){.type = RECORD_GPU_LOST, .gpu = {.gpu = 3}});
        submit(4, GIB);
        must_be_placed(4, cases[i].gpu);
    }
}

static void round_robin_goes_round_whatever_the_load(void **state)
{
    share_three_of_four("round-robin");
    resident(4, GIB, 3);
    for (uint32_t i = 0; i < 4; i++)
        sample(i, 39 * GIB, 0, 1000);
    for (uint32_t i = 0; i < 5; i++)
        resident(5 + i, GIB, i % 4);
}

static void exclusive_shares_nothing(void **state)
{
    struct reason reason;

    share_three_of_four("exclusive");
    resident(4, GIB, 3);
    submit(5, GIB);
    reason = must_wait(5, REASON_NO_IDLE_GPU);
    assert_int_equal(reason.wanted, 1);
    assert_int_equal(reason.qualified, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transitions_are_those_of_a_jobs_life),
        cmocka_unit_test_teardown(a_running_job_cannot_be_held, stop),
        cmocka_unit_test_teardown(reservations_leave_the_margin, stop),
        cmocka_unit_test_teardown(reservations_leave_foreign_memory, stop),
        cmocka_unit_test_teardown(reservations_count_what_a_job_really_uses, stop),
        cmocka_unit_test_teardown(the_monitor_view_leaves_the_margin, stop),
        cmocka_unit_test_teardown(the_floor_stands_in_for_a_claim, stop),
        cmocka_unit_test_teardown(a_gpu_is_closed_until_new_memory_has_settled, stop),
        cmocka_unit_test_teardown(busy_gpus_are_not_shared, stop),
        cmocka_unit_test_teardown(a_gpu_runs_so_many_jobs, stop),
        cmocka_unit_test_teardown(the_queue_is_first_come_first_served, stop),
        cmocka_unit_test_teardown(a_recovering_job_goes_first_and_alone, stop),
        cmocka_unit_test_teardown(a_fitting_job_waits_for_the_recovering_one, stop),
        cmocka_unit_test_teardown(a_job_is_recovered_so_often, stop),
        cmocka_unit_test_teardown(a_crash_teaches_what_the_job_needs, stop),
        cmocka_unit_test_teardown(other_failures_are_not_recovered, stop),
        cmocka_unit_test_teardown(idle_gpus_are_taken_first, stop),
        cmocka_unit_test_teardown(mug_takes_the_busiest_and_leaves_idle_gpus, stop),
        cmocka_unit_test_teardown(each_sharing_policy_ranks_its_way, stop),
        cmocka_unit_test_teardown(round_robin_goes_round_whatever_the_load, stop),
        cmocka_unit_test_teardown(exclusive_shares_nothing, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
