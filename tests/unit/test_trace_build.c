/* Building traces: the window, the shrinking, the mix, the kept part, the load; and that a seed says all. */
#include "unit.h"

#include "trace/build.h"

#define JOBS 1000

static struct workloads workloads;
static struct trace source; /* JOBS of a published kind: one every 10 s from 500 s on, of 1, 2, 4 or 8 GPUs */
static struct trace built;  /* by the last build() */
static struct trace_build_report report;

static const struct trace_build thesis_mix = {
    .to_ns = -1,
    .draw = true,
    .workloads = &workloads,
    .mix = {65, 27, 8},
    .stretch = 1,
    .seed = 1,
};

static int setup(void **state)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    strbuf_puts(&text, "vc,submit_s,gpus,duration_s_v100\n");
    for (int i = 0; i < JOBS; i++)
        strbuf_printf(&text, "a,%d,%d,%d.0004\n", 500 + 10 * i, 1 << (i % 4), 1 + 100 * i);
    return workloads_read(&workloads, CARMA_DATA "/workloads.csv", NULL) ||
           trace_load_text(&source, "s.csv", text.text, text.length, NULL, NULL);
}

static int teardown(void **state)
{
    trace_release(&built);
    trace_release(&source);
    workloads_release(&workloads);
    return 0;
}

static void build(const struct trace_build *plan)
{
    trace_release(&built);
    fail_if(trace_build(&built, &source, plan, &report, &trouble), trouble);
}

static char *written(const struct trace_build *plan)
{
    struct strbuf out = {0};

    build(plan);
    trace_write(&built, &out);
    return strbuf_steal(&out);
}

static void refuse(const struct trace_build *plan, const char *expected)
{
    trace_release(&built);
    assert_true(trace_build(&built, &source, plan, &report, &trouble) < 0);
    assert_string_equal(trouble.text, expected);
    assert_null(built.items);
}

TEST(test_mix_is_met)
{
    static const struct {
        size_t jobs;
        uint32_t mix[WORKLOAD_CLASS_COUNT];
        size_t counts[WORKLOAD_CLASS_COUNT];
    } cases[] = {
        {90, {65, 27, 8}, {59, 24, 7}}, /* 58.5, 24.3, 7.2: the job left over goes to the largest remainder */
        {60, {0, 83, 17}, {0, 50, 10}}, /* the thesis's 60 tasks */
        {1, {1, 1, 2}, {0, 0, 1}},      {7, {1, 0, 0}, {7, 0, 0}}, {1000, {65, 27, 8}, {650, 270, 80}},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        struct trace_build plan = thesis_mix;
        size_t counts[WORKLOAD_CLASS_COUNT] = {0};

        plan.jobs = cases[i].jobs;
        memcpy(plan.mix, cases[i].mix, sizeof plan.mix);
        build(&plan);
        assert_int_equal(built.count, cases[i].jobs);
        for (size_t k = 0; k < built.count; k++)
            counts[workload_class(built.items[k].workload)]++;
        assert_memory_equal(counts, cases[i].counts, sizeof counts);
        assert_memory_equal(report.class_jobs, cases[i].counts, sizeof counts);
    }
}

/* In random order, and within a class evenly: 26 light workloads on 1000 jobs are 38.5 each, s.d. 6.1. */
TEST(test_draws_are_even)
{
    struct trace_build plan = thesis_mix;
    size_t light_first_half = 0;

    plan.mix[WORKLOAD_MEDIUM] = plan.mix[WORKLOAD_HEAVY] = 0;
    build(&plan);
    for (size_t i = 0; i < workloads.count; i++) {
        size_t drawn = 0;
        for (size_t k = 0; k < built.count; k++)
            drawn += built.items[k].workload == &workloads.items[i];
        if (workload_class(&workloads.items[i]) == WORKLOAD_LIGHT)
            assert_in_range(drawn, 15, 65);
        else
            assert_int_equal(drawn, 0);
    }

    build(&thesis_mix);
    for (size_t k = 0; k < JOBS / 2; k++)
        light_first_half += workload_class(built.items[k].workload) == WORKLOAD_LIGHT;
    assert_in_range(light_first_half, 290, 360); /* 325, s.d. 7.5 */
}

TEST(test_seed_says_all)
{
    struct trace_build plan = thesis_mix;

    plan.jobs = 100;
    CLEANUP(free_ptr) char *once = written(&plan);
    CLEANUP(free_ptr) char *again = written(&plan);
    plan.seed = 2;
    CLEANUP(free_ptr) char *other = written(&plan);
    assert_string_equal(once, again);
    assert_string_not_equal(once, other);
}

TEST(test_window)
{
    struct trace_build plan = thesis_mix;

    plan.from_ns = 1000 * NS_PER_SEC;
    plan.to_ns = 1100 * NS_PER_SEC;
    build(&plan);
    assert_int_equal(built.count, 10); /* 1000, 1010, ... 1090 */
    assert_int_equal(report.in_window, 10);
    assert_int_equal(built.items[0].line, 52);
    assert_true(built.items[0].arrival_ns == 0 && built.items[9].arrival_ns == 90 * NS_PER_SEC);

    plan.max_gpus = 2;
    build(&plan);
    assert_int_equal(built.count, 4);
    assert_int_equal(report.too_large, 6);

    plan.from_ns = 20000 * NS_PER_SEC;
    plan.to_ns = -1;
    refuse(&plan, "no job arrives in that window: they arrive from 500 s to 10490 s");
    plan.from_ns = 520 * NS_PER_SEC;
    plan.to_ns = 540 * NS_PER_SEC;
    refuse(&plan, "each of the window's 2 jobs takes more than 2 GPUs: allow more");
    plan.to_ns = 600 * NS_PER_SEC;
    plan.jobs = 5;
    refuse(&plan, "5 jobs are asked for and the window has 4: widen it or ask for fewer");
}

/* Each job is as likely to stay as any other, and they stay in order. */
TEST(test_shrinking_is_even)
{
    struct trace_build plan = thesis_mix;
    size_t kept[10] = {0};

    plan.jobs = 100;
    for (plan.seed = 0; plan.seed < 50; plan.seed++) {
        build(&plan);
        for (size_t i = 0; i < built.count; i++) {
            kept[(built.items[i].line - 2) / 100]++;
            assert_true(i == 0 || built.items[i].line > built.items[i - 1].line);
        }
    }
    for (size_t tenth = 0; tenth < 10; tenth++)
        assert_in_range(kept[tenth], 420, 580); /* 500, s.d. 20 */
}

TEST(test_what_is_kept)
{
    struct trace_build plan = thesis_mix;

    build(&plan);
    for (size_t i = 0; i < built.count; i++)
        assert_true(built.items[i].gpus == built.items[i].workload->gpus && built.items[i].duration_ns == -1);

    plan.keep_gpus = plan.keep_durations = true;
    plan.min_duration_ns = 60 * NS_PER_SEC;
    plan.max_duration_ns = 5000 * NS_PER_SEC;
    build(&plan);
    for (size_t i = 0; i < built.count; i++) {
        int64_t expected_s = 1 + 100 * (int64_t)i;
        expected_s = expected_s < 60 ? 60 : expected_s > 5000 ? 5000 : expected_s;
        assert_int_equal(built.items[i].gpus, 1 << (i % 4));
        assert_true(built.items[i].workload->gpus <= built.items[i].gpus);
        assert_true(built.items[i].duration_ns == expected_s * NS_PER_SEC); /* to the millisecond */
    }

    plan = thesis_mix;
    plan.max_gpus = 1;
    build(&plan);
    for (size_t i = 0; i < built.count; i++)
        assert_int_equal(built.items[i].gpus, 1);
}

TEST(test_load)
{
    struct trace_build plan = thesis_mix;
    double gpu_seconds = 0, span_s;

    plan.load = 0.8;
    plan.load_gpus = 4;
    build(&plan);
    for (size_t i = 0; i < built.count; i++)
        gpu_seconds += built.items[i].gpus * (double)trace_job_duration_ns(&built.items[i]) / 1e9;
    span_s = (double)built.items[built.count - 1].arrival_ns / 1e9;
    assert_true(fabs(gpu_seconds / (4 * span_s) - 0.8) < 1e-6);
    assert_true(fabs(report.stretch - span_s / 9990) < 1e-6);

    plan.load = 0;
    plan.stretch = 0.25;
    build(&plan);
    assert_true(built.items[3].arrival_ns == 7500 * NS_PER_MS);

    plan.stretch = 1e6;
    refuse(&plan, "stretched 1e+06 times, the last job arrives after 9.99e+09 s: the most is 1e+09 s");
    plan.from_ns = 500 * NS_PER_SEC;
    plan.to_ns = 501 * NS_PER_SEC;
    plan.load = 0.5;
    refuse(&plan, "all jobs arrive at once: no times between them make a load of 0.5");
}

TEST(test_no_workload_of_a_class)
{
    static const char text[] = "id,gpus,peak_mib,resident_mib,solo_runtime_s,sm_activity\n"
                               "a,1,100,100,60,0.1\n"
                               "b,2,100,100,60,0.1\n";
    struct trace_build plan = thesis_mix;
    CLEANUP(workloads_release) struct workloads few;

    assert_int_equal(workloads_read_text(&few, "w.csv", text, sizeof text - 1, NULL), 0);
    plan.workloads = &few;
    refuse(&plan, "there is no medium workload: give that class no share of the mix");
    plan.mix[WORKLOAD_MEDIUM] = 0;
    plan.max_gpus = 1;
    refuse(&plan, "no heavy workload runs on at most 1 GPUs: give that class no share of the mix");
}

/* A written trace reads back as the same jobs, and without its own GPUs and run times it has no columns for them. */
TEST(test_written_reads_back)
{
    struct trace_load_options options = {.workloads = &workloads};
    struct trace_build plan = thesis_mix;

    for (int keep = 0; keep < 2; keep++) {
        CLEANUP(trace_release) struct trace back;
        CLEANUP(strbuf_release) struct strbuf out = {0};

        plan.keep_gpus = plan.keep_durations = keep;
        plan.stretch = 0.1234567;
        build(&plan);
        trace_write(&built, &out);
        fail_if(trace_load_text(&back, "b.csv", out.text, out.length, &options, &trouble), trouble);
        assert_int_equal(
            strncmp(out.text, keep ? "arrival_s,workload,gpus,duration_s\n" : "arrival_s,workload\n", keep ? 35 : 19),
            0);
        assert_int_equal(back.count, built.count);
        for (size_t i = 0; i < back.count; i++) {
            assert_true(back.items[i].arrival_ns == built.items[i].arrival_ns);
            assert_true(back.items[i].duration_ns == built.items[i].duration_ns);
            assert_ptr_equal(back.items[i].workload, built.items[i].workload);
            assert_int_equal(back.items[i].gpus, built.items[i].gpus);
        }
    }
}

/* Without drawing, jobs stay as they are. */
TEST(test_cut_without_drawing)
{
    static const char text[] = "arrival_s,workload,gpus,duration_s\n10,resnet,2,99\n20,vgg,,\n30,vgg,1,5\n";
    struct trace_load_options options = {.workloads = &workloads};
    struct trace_build plan = {.from_ns = 0, .to_ns = 25 * NS_PER_SEC, .stretch = 2};
    CLEANUP(trace_release) struct trace own;
    CLEANUP(strbuf_release) struct strbuf out = {0};

    assert_int_equal(trace_load_text(&own, "o.csv", text, sizeof text - 1, &options, NULL), 0);
    trace_release(&built);
    assert_int_equal(trace_build(&built, &own, &plan, &report, NULL), 0);
    trace_write(&built, &out);
    assert_string_equal(out.text, "arrival_s,workload,gpus,duration_s\n0,resnet,2,99\n20,vgg,1,\n");
}

RUN_TESTS(setup, teardown)
