#include "sim_fixture.h"

#include "core/job.h"
#include "sim/random.h"

static struct sim_result result; /* of the last run */

static void observe(const struct sim_job *jobs, size_t count, const struct sim_node *node,
                    const struct sim_options *options, const struct sim_observer *observer)
{
    sim_result_release(&result);
    fail_if(sim_run(jobs, count, node, options, observer, &result, &trouble) != 0, trouble);
}

static void simulate(const struct sim_job *jobs, size_t count, const struct sim_node *node,
                     const struct sim_options *options)
{
    observe(jobs, count, node, options, NULL);
}

TEST(one_job_alone)
{
    struct sim_job job = job_of(&half, 5, 1000);
    struct sim_options options = eager("magm");
    double idle_j = 12 * 50.0, busy_j = 1000 * contention_power_w(0.5, 50, 250);

    simulate(&job, 1, &one_gpu, &options);
    assert_near(result.makespan_s, 1012, 1e-6);
    assert_near(result.wait.mean_s, 0, 1e-9);
    assert_near(result.execution.mean_s, 1012, 1e-6);
    assert_near(result.completion.p95_s, 1012, 1e-6);
    assert_near(result.measures.sharing.max, 1.012, 1e-9);
    assert_near(result.measures.bounded.p95, 1.012, 1e-9);
    assert_near(result.measures.jain, 1, 1e-9);
    assert_near(result.energy_j, idle_j + busy_j, 1e-3);
    assert_near(result.activity_mean, 0.5 * 1000 / 1012, 1e-9);
    assert_near(result.memory_mean_bytes, 10.0 * GIB * (1012 - 27) / 1012, 1);
    assert_int_equal(result.completed, 1);
    assert_int_equal(result.oom, 0);
    assert_int_equal(result.rows[0].first_launch_ns, SECONDS(5));
    assert_int_equal(result.rows[0].state, JOB_COMPLETED);
}

/* Two that both fill half of a GPU deliver 0.75 together: each runs at 0.75 of its solo speed while both train. */
TEST(two_jobs_share)
{
    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 100, 1000)};
    struct sim_options options = eager("magm");
    /* The first trains alone from 12 to 112, then shares: 1200 more seconds. The second has done 900 of 1000 then. */
    double first_end = 112 + 1200, second_end = first_end + 100;

    simulate(jobs, 2, &one_gpu, &options);
    assert_near((double)result.rows[0].ended_ns / 1e9, first_end, 1e-6);
    assert_near((double)result.rows[1].ended_ns / 1e9, second_end, 1e-6);
    assert_near(result.makespan_s, second_end, 1e-6);
    assert_near(result.energy_j,
                12 * 50 + 200 * contention_power_w(0.5, 50, 250) + 1200 * contention_power_w(0.75, 50, 250), 1e-3);
    assert_near(result.measures.sharing.max, (first_end - 0) / 1000, 1e-9);
    assert_near(result.measures.sharing.mean, (first_end + second_end - 100) / 2000, 1e-9);

    options.share = SHARE_TIME_SLICE;
    simulate(jobs, 2, &one_gpu, &options);
    double g = 0.5 / 0.65, rate = (1 - (1 - g) * (1 - g) - 0.1 * g * g) / (2 * g);
    assert_near((double)result.rows[0].ended_ns / 1e9, 112 + 900 / rate, 1e-6);

    options.share = SHARE_MPS;
    options.contention.capacity = 1.25; /* 0.9375 together */
    simulate(jobs, 2, &one_gpu, &options);
    assert_near((double)result.rows[0].ended_ns / 1e9, 112 + 900 / 0.9375, 1e-6);
}

/* The mode decides how jobs contend: one that asks for streams gets them, and the next cannot join it by MPS. */
TEST(jobs_share_as_they_were_placed)
{
    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 100, 1000), job_of(&half, 200, 1000)};
    struct sim_options options = eager("magm");
    double g = 0.5 / 0.65, rate = (1 - (1 - g) * (1 - g) - 0.1 * g * g) / (2 * g);

    options.share = SHARE_MPS;
    jobs[0].share = jobs[1].share = SHARE_TIME_SLICE;
    jobs[2].share = SHARE_MPS;
    simulate(jobs, 3, &one_gpu, &options);
    assert_near((double)result.rows[0].ended_ns / 1e9, 112 + 900 / rate, 1e-6);
    assert_true(result.rows[2].first_launch_ns >= result.rows[1].ended_ns);

    options.share = SHARE_EXCLUSIVE; /* where nobody gets MPS either */
    simulate(jobs, 3, &one_gpu, &options);
    assert_near((double)result.rows[0].ended_ns / 1e9, 1012, 1e-6);
    assert_int_equal(result.rows[1].first_launch_ns, result.rows[0].ended_ns);
    assert_int_equal(result.rows[2].state, JOB_REFUSED);
}

/* A job on two GPUs runs at its slowest side, and keeps its other GPU less busy for it. */
TEST(slowest_side)
{
    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 1, 1000)};
    struct sim_options options = eager("magm");

    jobs[0].gpus = 2;
    jobs[1].work_ns = SECONDS(300);
    simulate(jobs, 2, &two_gpus, &options);
    /* The second trains from 13 at 0.75 for 400 s; the first did 1 s before, 300 meanwhile, 699 after. */
    assert_near((double)result.rows[1].ended_ns / 1e9, 13 + 400, 1e-6);
    assert_near((double)result.rows[0].ended_ns / 1e9, 413 + 699, 1e-6);
    assert_near(result.activity_mean * 2 * result.makespan_s, 2 * 0.5 * 1000 + 0.5 * 300, 1e-3);
}

static uint32_t crashes_of(const struct sim_job *job, const struct sim_options *options)
{
    simulate(job, 1, &one_gpu, options);
    assert_int_equal(result.rows[0].state, JOB_COMPLETED);
    return result.rows[0].crashes;
}

/* The truth of a fence: an allocation beyond it fails, though the GPU has room; a guess is put right at once. */
TEST(a_fence_is_kept)
{
    static const struct sim_use need = {.activity = 0.5, .resident_bytes = 20 * GIB, .need_bytes = 20 * GIB};
    struct sim_job job = job_of(&need, 0, 100);
    struct sim_options options = eager("carma");

    options.core.memory_view = MEMORY_RESERVE;
    options.core.oom_retry = OOM_RETRY_INFORMED;
    job.request_bytes = 8 * GIB;
    job.request_source = SOURCE_ESTIMATED;
    assert_int_equal(crashes_of(&job, &options), 0);
    options.core.memory_fence = 1;
    assert_int_equal(crashes_of(&job, &options), 1); /* the second try has none */
    job.request_source = SOURCE_DECLARED;
    assert_true(crashes_of(&job, &options) > 1); /* each with the result of the one before */
    job.request_bytes = 20 * GIB;
    assert_int_equal(crashes_of(&job, &options), 0);
}

TEST(late_joiner_crashes_and_recovers)
{
    static const struct sim_use exact = {.activity = 0.1, .resident_bytes = 20 * GIB, .need_bytes = 20 * GIB};
    struct sim_job jobs[] = {job_of(&large, 0, 1000), job_of(&large, 10, 1000)};
    struct sim_options options = eager("round-robin");

    simulate(jobs, 2, &one_gpu, &options);
    assert_int_equal(result.oom, 1);
    assert_int_equal(result.rows[0].crashes, 0);
    assert_int_equal(result.rows[1].crashes, 1);
    /* It trained from 22 until its memory was due at 37, so the first lost a quarter of that. */
    assert_near((double)result.rows[0].ended_ns / 1e9, 1012 + 15 * 0.25, 1e-6);
    /* Then it waits for an idle GPU and begins anew. */
    assert_int_equal(result.rows[1].first_launch_ns, SECONDS(10));
    assert_near((double)(result.rows[1].last_launch_ns - result.rows[0].ended_ns), 0, 1);
    assert_near((double)result.rows[1].ended_ns / 1e9, 1015.75 + 1012, 1e-6);
    assert_near(result.wait.mean_s, 0, 1e-9);
    assert_int_equal(result.completed, 2);
    /* A crashed attempt does not count for the sharing slowdown: only the one that completed does. */
    assert_near(result.measures.sharing.max,
                (double)(result.rows[0].ended_ns - result.rows[0].last_launch_ns) / 1e9 / 1000, 1e-9);
    assert_true(result.measures.bounded.max > 1.9);
    jobs[0].uses = jobs[1].uses = &exact; /* what just fits runs */
    simulate(jobs, 2, &one_gpu, &options);
    assert_int_equal(result.oom, 0);
    assert_int_equal(result.completed, 2);
}

TEST(what_never_fits_is_given_up)
{
    static const struct sim_use giant = {.activity = 0.5, .resident_bytes = 39 * GIB, .need_bytes = 41 * GIB};
    struct sim_job job = job_of(&giant, 0, 1000);
    struct sim_options options = eager("magm");

    simulate(&job, 1, &one_gpu, &options);
    assert_int_equal(result.completed, 0);
    assert_int_equal(result.rows[0].state, JOB_GPU_OOM);
    assert_int_equal(result.oom, 1); /* it asked for more than the GPU has: no second try */
    assert_near(result.makespan_s, 27, 1e-6);
    assert_int_equal(result.given_up, 1);
    assert_true(isnan(result.measures.sharing.max));
    job.request_bytes = 41 * GIB;
    simulate(&job, 1, &one_gpu, &options);
    assert_int_equal(result.rows[0].state, JOB_REFUSED);
    assert_int_equal(result.rows[0].first_launch_ns, -1);
    assert_int_equal(result.refused, 1);
    assert_int_equal(result.given_up, 0);
}

/* Two users' jobs one after the other: run times are those alone, waiting counts against the second. */
TEST(waiting_is_no_sharing)
{
    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 0, 1000)};
    struct sim_options options = eager("exclusive");

    jobs[1].uid = 7;
    simulate(jobs, 2, &one_gpu, &options);
    assert_near(result.measures.sharing.max, 1.012, 1e-9);
    assert_near(result.measures.bounded.max, 2.024, 1e-9);
    assert_int_equal(result.measures.users, 2);
    assert_near(result.measures.jain, 0.9, 1e-9); /* (1 + 2)^2 / (2 * (1 + 4)) */
}

/* While both wait, one with a share of three gets three times as much as one with one. */
TEST(shares_divide_the_gpus)
{
    static const struct sim_node four_gpus = {.gpu_count = 4, .total_bytes = 40 * GIB, .idle_w = 50, .full_w = 250};
    struct sim_options options = eager("exclusive");
    struct sim_job jobs[240];
    int started[2] = {0};

    options.core.order = ORDER_FAIR;
    options.core.backfill = 1;
    for (size_t i = 0; i < array_size(jobs); i++) {
        jobs[i] = job_of(&half, 0, 600);
        jobs[i].uid = i % 2;
        jobs[i].user_share = i % 2 ? 3 : 1;
    }
    simulate(jobs, array_size(jobs), &four_gpus, &options);
    for (size_t i = 0; i < array_size(jobs); i++)
        started[i % 2] += result.rows[i].first_launch_ns < SECONDS(600 * 30);
    assert_near(started[1] / (double)started[0], 3, 0.4);
}

/* A job that waits for ever ends nothing but itself. */
TEST(what_never_runs_is_told)
{
    struct sim_job jobs[] = {job_of(&half, 0, 100), job_of(&half, 1, 100)};
    struct sim_options options = eager("magm");

    jobs[1].gpus = 2;
    options.core.per_user.max_gpus = 1;
    simulate(jobs, 2, &two_gpus, &options);
    assert_int_equal(result.completed, 1);
    assert_int_equal(result.never_ended, 1);
    assert_string_equal(result.never_ended_why, "2 GPUs needed, a user's limit is 1 (max_gpus_per_user)");
    assert_int_equal(result.rows[1].ended_ns, -1);
    assert_near(result.makespan_s, 112, 1e-6);
    assert_near(result.completion.mean_s, 112, 1e-6);
    simulate(jobs + 1, 1, &two_gpus, &options);
    assert_true(isnan(result.wait.mean_s) && isnan(result.completion.p95_s));
}

TEST(limits_of_users)
{
    struct sim_job jobs[] = {job_of(&half, 0, 100), job_of(&half, 1, 100), job_of(&half, 2, 100)};
    struct sim_options options = eager("magm");

    options.core.per_user.max_queued = 2;
    simulate(jobs, 3, &one_gpu, &options);
    assert_int_equal(result.refused, 1);
    assert_int_equal(result.rows[2].state, JOB_REFUSED);
    jobs[2].uid = 7;
    simulate(jobs, 3, &one_gpu, &options);
    assert_int_equal(result.completed, 3);
}

/* The core's input: in the daemon's quanta, and only while something waits. */
struct told {
    int64_t last_sample_ns;
    int32_t last_permille;
    int64_t look_ns; /* the sample of GPU 0 then */
    struct record_sample seen;
    int64_t first_use_bytes, observed_bytes, requested_bytes, free_bytes;
    size_t samples, placed, requeued;
};

static void on_record(void *user, const struct record *record)
{
    struct told *told = user;

    told->placed += record->type == RECORD_PLACED;
    told->requeued += record->type == RECORD_REQUEUED;
    if (record->type == RECORD_SAMPLE) {
        told->samples++;
        told->last_sample_ns = record->at_ns;
        told->last_permille = record->sample.smact_permille;
        if (record->at_ns == told->look_ns && record->sample.gpu == 0)
            told->seen = record->sample;
        assert_int_equal(record->sample.used_bytes % (16 * MIB), 0);
        assert_int_equal(record->sample.smact_permille % 5, 0);
    }
    if (record->type == RECORD_FIRST_USE)
        told->first_use_bytes = record->memory.bytes;
    if (record->type == RECORD_OBSERVED)
        told->observed_bytes = record->memory.bytes;
    if (record->type == RECORD_EXITED && record->exited.cause == EXIT_GPU_OOM) {
        told->requested_bytes = record->exited.requested_bytes;
        told->free_bytes = record->exited.free_bytes;
    }
}

TEST(samples_reach_the_core)
{
    struct sim_job jobs[] = {job_of(&half, 0, 500), job_of(&half, 100, 10)};
    struct sim_options options = eager("exclusive");
    struct told told = {0};
    struct sim_observer observer = {.user = &told, .on_record = on_record};

    observe(jobs, 2, &one_gpu, &options, &observer);
    /* From 12 on it is half busy: the mean over 90 s says so from 102 on, and never changes after that. */
    assert_int_equal(told.placed, 2);
    assert_int_equal(told.first_use_bytes, 10 * GIB);
    assert_int_equal(told.observed_bytes, 0);
    assert_int_equal(told.last_permille, 500);
    /* The second job's first sample is due when it waits; the last one when the first job has left. */
    assert_int_equal(told.last_sample_ns, SECONDS(102));
    assert_in_range(told.samples, 3, 8);
}

/* The monitor's view of a GPU that has been idle for half of the window and then half busy. */
static struct record_sample sample_of(uint32_t statistic)
{
    static const struct sim_use use = {
        .activity = 0.5, .occupancy = 0.2, .dram = 0.3, .resident_bytes = 10 * GIB, .need_bytes = 12 * GIB};
    struct sim_job jobs[] = {job_of(&use, 0, 500), job_of(&use, 12 + 46, 10)};
    struct sim_options options = eager("exclusive");
    struct told told = {.look_ns = SECONDS(12 + 46)};
    struct sim_observer observer = {.user = &told, .on_record = on_record};

    options.core.statistic = statistic;
    options.core.window_ns = SECONDS(92);
    observe(jobs, 2, &one_gpu, &options, &observer);
    return told.seen;
}

TEST(statistics_of_the_window)
{
    struct record_sample sample = sample_of(STATISTIC_MEAN);
    double average = 500 * (1 - pow(1 - 2.0 / 93, 46));

    assert_int_equal(sample.smact_permille, 250);
    assert_int_equal(sample.smocc_permille, 100);
    assert_int_equal(sample.dram_permille, 150);
    assert_int_equal(sample.used_bytes, 10 * GIB);
    assert_int_equal(sample.unmanaged_bytes, 0);
    assert_int_equal(sample_of(STATISTIC_MEDIAN).smact_permille, 0);
    assert_int_equal(sample_of(STATISTIC_P95).smact_permille, 500);
    assert_int_equal(sample_of(STATISTIC_EMA).smact_permille, (int)average / 5 * 5);
    assert_int_equal(sample_of(STATISTIC_RISK).smact_permille, (int)(0.2 * 250 + 0.3 * 500 + 0.2 * average) / 5 * 5);
}

TEST(a_crash_says_what_it_asked_for)
{
    struct sim_job jobs[] = {job_of(&large, 0, 1000), job_of(&large, 10, 1000)};
    struct sim_options options = eager("round-robin");
    struct told told = {0};
    struct sim_observer observer = {.user = &told, .on_record = on_record};

    observe(jobs, 2, &one_gpu, &options, &observer);
    /* 15 GiB are free. In steps of 5 GiB it got three, and asked for the fourth. */
    assert_int_equal(told.requested_bytes, 5 * GIB);
    assert_int_equal(told.free_bytes, 0);
    assert_int_equal(told.observed_bytes, 30 * GIB);
    assert_int_equal(told.requeued, 1);
}

TEST(mig_instances)
{
    struct sim_job jobs[] = {job_of(&half, 0, 700), job_of(&half, 0, 700), job_of(&half, 0, 700)};
    struct sim_options options = eager("exclusive");
    double rate = contention_mig_rate(&contention_default, 0.5, 3, 0.5);

    assert_int_equal(sim_mig_instances(3), 2);
    assert_int_equal(sim_mig_instances(5), 0);
    assert_int_equal(sim_mig_bytes(40 * GIB, 3), 20 * GIB);
    options.mig_slices = 3;
    simulate(jobs, 3, &one_gpu, &options);
    /* Each for itself on 3 of 7 compute slices and 4 of 8 memory slices. */
    assert_near((double)result.rows[0].ended_ns / 1e9, 12 + 700 / rate, 1e-6);
    assert_near((double)result.rows[1].ended_ns / 1e9, 12 + 700 / rate, 1e-6);
    assert_near(result.makespan_s, 2 * (12 + 700 / rate), 1e-6);
    assert_near(result.activity_mean * result.makespan_s, 3 * 0.5 * 700, 1e-3);
}

static void refused(const struct sim_job *jobs, size_t count, const struct sim_options *options, const char *complaint)
{
    sim_result_release(&result);
    assert_true(sim_run(jobs, count, &one_gpu, options, NULL, &result, &trouble) < 0);
    assert_has(trouble.text, complaint);
}

TEST(bad_input)
{
    struct sim_job jobs[] = {job_of(&half, 10, 100), job_of(&half, 5, 100)};
    struct sim_options options = eager("magm");

    refused(jobs, 2, &options, "job 2 arrives at 5000000000 ns");
    jobs[0].arrival_ns = -1;
    refused(jobs, 1, &options, "before time 0");
    jobs[0].arrival_ns = 0;
    jobs[1].gpus = 2;
    refused(jobs, 2, &options, "job 2 needs 2 GPUs, the node has 1");
    jobs[1].gpus = 1;
    jobs[1].work_ns = 0;
    refused(jobs, 2, &options, "job 2 has 0 ns of work");
    refused(jobs, 0, &options, "no jobs");
    strcpy(options.core.policy, "none");
    refused(jobs, 1, &options, "there is no policy 'none'");
    strcpy(options.core.policy, "magm");
    options.mig_slices = 5;
    refused(jobs, 1, &options, "no MIG instance has 5 slices");
}

TEST(jitter_is_of_the_seed_and_the_job)
{
    double sum = 0, squares = 0;

    for (uint64_t i = 0; i < 20000; i++) {
        double x = random_normal(7, i);
        sum += x;
        squares += x * x;
    }
    assert_near(sum / 20000, 0, 0.02);
    assert_near(squares / 20000, 1, 0.03);
    assert_true(random_normal(1, 5) == random_normal(1, 5));
    assert_true(random_normal(1, 5) != random_normal(2, 5));
    assert_true(random_normal(1, 5) != random_normal(1, 6));

    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 0, 1000)};
    struct sim_options options = eager("magm");
    options.jitter = 0.03;
    options.seed = 1;
    simulate(jobs, 2, &two_gpus, &options);
    int64_t first = result.rows[0].work_ns;
    int64_t second = result.rows[1].work_ns;
    assert_int_not_equal(second, first);
    assert_near((double)first / 1e12, 1 + 0.03 * random_normal(1, 0), 1e-9);
    strcpy(options.core.policy, "exclusive");
    simulate(jobs, 2, &two_gpus, &options);
    assert_int_equal(result.rows[1].work_ns, second);
    options.seed = 2;
    simulate(jobs, 2, &two_gpus, &options);
    assert_int_not_equal(result.rows[1].work_ns, second);
}
