#include "unit.h"

#include "sim_fixture.h"
#include "sim/past.h"

static const struct sim_use raised = {.activity = 0.5, .resident_bytes = 10 * GIB, .need_bytes = 12 * GIB};
static const struct sim_use busy = {.activity = 0.8, .resident_bytes = 30 * GIB, .need_bytes = 30 * GIB};
static const struct sim_use small = {.activity = 0.2, .resident_bytes = 1 * GIB, .need_bytes = 1 * GIB};

static struct sim_job named_job(const struct sim_use *use, const char *workload, double arrival_s, double work_s)
{
    struct sim_job job = job_of(use, arrival_s, work_s);

    job.workload = workload;
    return job;
}

static void take(void *recorded, const struct record *record)
{
    past_record(recorded, record);
}

static struct past *past_of(const struct sim_job *jobs, size_t count, struct past_jobs *past)
{
    struct sim_options options = eager("round-robin");
    struct past *recorded = past_new();
    struct sim_observer observer = {.user = recorded, .on_record = take};
    CLEANUP(sim_result_release) struct sim_result result;

    options.core.learn = true; /* so that it wants the samples */
    fail_if(sim_run(jobs, count, &two_gpus, &options, &observer, &result, &trouble) != 0, trouble);
    past_finish(recorded, SHARE_MPS, &contention_default, options.load_ns, 0, past);
    return recorded;
}

/* The jobs' figures come out of the records again, though they shared their GPUs for a part of it. */
TEST(jobs_come_back)
{
    struct sim_job jobs[] = {named_job(&raised, "a", 100, 2000), named_job(&small, "b", 100, 2000),
                             named_job(&raised, "a", 700, 1000), named_job(&small, "b", 800, 500)};
    struct past_jobs past;

    jobs[3].request_bytes = 3 * GIB;
    jobs[3].request_source = SOURCE_DECLARED;
    jobs[3].exclusive = false;
    struct past *recorded = past_of(jobs, 4, &past);
    assert_int_equal(past.count, 4);
    assert_int_equal(past.left_out, 0);
    assert_int_equal(past.gpu_count, 2);
    assert_int_equal(past.total_bytes, 40 * GIB);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(past.items[i].arrival_ns, jobs[i].arrival_ns - jobs[0].arrival_ns);
        assert_string_equal(past.items[i].workload, jobs[i].workload);
        assert_int_equal(past.items[i].request_bytes, jobs[i].request_bytes);
        assert_near(past.items[i].uses[0].activity, jobs[i].uses[0].activity, 0.005);
        assert_int_equal(past.items[i].uses[0].need_bytes, jobs[i].uses[0].need_bytes);
        assert_near((double)past.items[i].work_ns / 1e9, (double)jobs[i].work_ns / 1e9, 5);
    }
    /* The last two never had a GPU for themselves for long enough: they get the figures of their workload's others. */
    assert_int_equal(past.inferred, 2);
    past_free(recorded);
}

/* A job on two GPUs, slowed on one of them. */
TEST(the_slowest_side_counts)
{
    struct sim_job jobs[] = {named_job(&raised, "a", 0, 2000), named_job(&raised, "b", 500, 1000)};
    struct past_jobs past;

    jobs[0].gpus = 2;
    struct past *recorded = past_of(jobs, 2, &past);
    assert_near((double)past.items[0].work_ns / 1e9, 2000, 5);
    assert_near((double)past.items[1].work_ns / 1e9, 1000, 5);
    assert_int_equal(past.items[0].gpus, 2);
    past_free(recorded);
}

/* A run that crashed is not a run to the end, but it slowed others; the last one counts. */
TEST(crashed_runs)
{
    struct sim_job jobs[] = {named_job(&busy, "a", 0, 1000), named_job(&busy, "b", 1, 1000),
                             named_job(&busy, "c", 2, 1000)};
    struct past_jobs past;
    struct past *recorded = past_of(jobs, 3, &past);

    assert_int_equal(past.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_near((double)past.items[i].work_ns / 1e9, 1000, 5);
    assert_int_equal(past.items[2].uses[0].need_bytes, 30 * GIB);
    past_free(recorded);
}

static void note(struct past *recorded, struct record record)
{
    past_record(recorded, &record);
}

/* By hand: jobs that are still there, never ran, were lost, or never used their GPU. */
TEST(what_is_left_out)
{
    struct past *recorded = past_new();
    struct past_jobs past;

    note(recorded, (struct record){.type = RECORD_GPU_BACK, .gpu = {.gpu = 0, .total_bytes = 8 * GIB}});
    note(recorded, (struct record){.type = RECORD_SHARE_GIVEN, .share_given = {.share = 3}});
    for (uint64_t job = 1; job <= 5; job++)
        note(recorded, (struct record){.type = RECORD_SUBMITTED,
                                       .at_ns = SECONDS(10 * job),
                                       .job = job,
                                       .submitted = {.gpus = 1, .request_bytes = -1}});
    for (uint64_t job = 1; job <= 4; job++)
        note(recorded,
             (struct record){.type = RECORD_PLACED, .at_ns = SECONDS(100), .job = job, .placed = {.count = 1}});
    note(recorded,
         (struct record){.type = RECORD_EXITED, .at_ns = SECONDS(105), .job = 2, .exited = {.cause = EXIT_FAILED}});
    note(recorded, (struct record){.type = RECORD_LOST, .at_ns = SECONDS(200), .job = 3});
    note(recorded,
         (struct record){.type = RECORD_EXITED, .at_ns = SECONDS(212), .job = 4, .exited = {.cause = EXIT_COMPLETED}});
    past_finish(recorded, SHARE_MPS, &contention_default, SECONDS(12), 0, &past);
    assert_int_equal(past.count, 2); /* 2 and 4 */
    assert_int_equal(past.left_out, 3);
    assert_int_equal(past.inferred, 2);
    assert_int_equal(past.items[0].arrival_ns, 0);
    assert_int_equal(past.items[0].user_share, 3);
    assert_int_equal(past.items[1].arrival_ns, SECONDS(20));
    assert_int_equal(past.items[0].work_ns, NS_PER_MS);
    assert_near(past.items[1].uses[0].activity, PAST_ACTIVITY_ASSUMED, 0);
    /* From 112 to 200 three of activity 0.5 deliver 0.875, then two 0.75. */
    assert_near((double)past.items[1].work_ns / 1e9, 88 * 0.875 / 1.5 + 12 * 0.75, 1e-6);
    past_free(recorded);
}

/* Two jobs of two users beside each other for 100 s after they loaded: the work that each did, in seconds. */
static double work_of_two(enum share_mode share, struct core_config config)
{
    struct past *recorded = past_new();
    struct past_jobs past;

    note(recorded, (struct record){.type = RECORD_RECONFIGURED, .config = config});
    for (uint32_t user = 1; user <= 2; user++) {
        note(recorded, (struct record){.type = RECORD_SUBMITTED,
                                       .job = user,
                                       .submitted = {.gpus = 1, .request_bytes = -1, .uid = user}});
        note(recorded, (struct record){.type = RECORD_PLACED, .job = user, .placed = {.count = 1, .share = share}});
    }
    for (uint64_t job = 1; job <= 2; job++)
        note(recorded, (struct record){.type = RECORD_EXITED, .at_ns = SECONDS(112), .job = job});
    past_finish(recorded, SHARE_MPS, &contention_default, SECONDS(12), 0, &past);
    assert_int_equal(past.count, 2);
    double work_s = (double)past.items[0].work_ns / 1e9;
    past_free(recorded);
    return work_s;
}

/* Of activity 0.5 each: 0.75 of its speed under MPS, and by turns the speed of docs/contention.md. */
TEST(jobs_shared_as_recorded)
{
    const struct core_config each = {.mps_domain = MPS_DOMAIN_USER}, node_wide = {.mps_domain = MPS_DOMAIN_NODE},
                             all = {.mps_domain = MPS_DOMAIN_USER, .mps_multiuser = true};
    double turns_s = 100 * 0.576923076923;

    assert_near(work_of_two(SHARE_MPS, all), 75, 1e-6);
    assert_near(work_of_two(SHARE_MPS, node_wide), 75, 1e-6);
    assert_near(work_of_two(SHARE_MPS, each), turns_s, 1e-6);
    assert_near(work_of_two(SHARE_TIME_SLICE, all), turns_s, 1e-6);
    assert_near(work_of_two(SHARE_ANY, all), 75, 1e-6);
}

static void sample(struct past *recorded, double at_s, int32_t permille)
{
    note(recorded, (struct record){.type = RECORD_SAMPLE,
                                   .at_ns = SECONDS(at_s),
                                   .sample = {.gpu = 0, .smact_permille = permille}});
}

/* Of jobs that were submitted at 0, 100 and 200 s, the last of which ended at 300 s, those of the last 200 s. */
TEST(only_the_last_are_kept)
{
    struct past *recorded = past_new();
    struct past_jobs past;

    for (uint64_t job = 0; job < 3; job++) {
        note(recorded, (struct record){.type = RECORD_SUBMITTED,
                                       .at_ns = SECONDS(100 * job),
                                       .job = job + 1,
                                       .submitted = {.gpus = 1, .request_bytes = -1}});
        note(recorded, (struct record){
                           .type = RECORD_PLACED, .at_ns = SECONDS(100 * job), .job = job + 1, .placed = {.count = 1}});
        note(recorded, (struct record){.type = RECORD_EXITED, .at_ns = SECONDS(100 * job + 100), .job = job + 1});
    }
    past_finish(recorded, SHARE_MPS, &contention_default, SECONDS(12), SECONDS(200), &past);
    assert_int_equal(past.count, 2);
    assert_int_equal(past.items[1].arrival_ns, SECONDS(100));
    past_free(recorded);
}

/* Only the readings of a whole window of a job that was alone all the while are its own. */
TEST(samples_that_tell)
{
    struct past *recorded = past_new();
    struct past_jobs past;

    note(recorded, (struct record){.type = RECORD_RECONFIGURED, .config = {.window_ns = SECONDS(90)}});
    for (uint64_t job = 1; job <= 2; job++) {
        note(recorded,
             (struct record){.type = RECORD_SUBMITTED, .job = job, .submitted = {.gpus = 1, .request_bytes = -1}});
    }
    sample(recorded, 0, 900); /* nobody is there */
    note(recorded, (struct record){.type = RECORD_PLACED, .job = 1, .placed = {.count = 1}});
    sample(recorded, 100, 100);
    sample(recorded, 130, 700);
    sample(recorded, 140, -1); /* not measured */
    note(recorded, (struct record){.type = RECORD_PLACED, .at_ns = SECONDS(200), .job = 2, .placed = {.count = 1}});
    sample(recorded, 400, 900); /* together */
    note(recorded, (struct record){.type = RECORD_EXITED, .at_ns = SECONDS(410), .job = 2});
    sample(recorded, 450, 900); /* the window still shows the other one */
    sample(recorded, 600, 720);
    note(recorded, (struct record){.type = RECORD_EXITED, .at_ns = SECONDS(700), .job = 1});
    past_finish(recorded, SHARE_MPS, &contention_default, SECONDS(12), 0, &past);
    assert_int_equal(past.count, 2);
    assert_near(past.items[0].uses[0].activity, 0.71, 1e-9);
    assert_int_equal(past.inferred, 1);
    assert_near(past.items[1].uses[0].activity, 0.71, 1e-9);
    past_free(recorded);
}
