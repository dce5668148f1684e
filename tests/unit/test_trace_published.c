/* Usage: test_trace_published DIRECTORY: the published files as they stand; skipped where they are not. */
#include "unit.h"

#include "trace/trace.h"

#define SKIPPED 77

static const char *directory;
static struct workloads workloads;

TEST(test_traces)
{
    static const struct {
        const char *name, *vc;
        enum trace_format format;
        size_t jobs, left_out;
        int64_t last_s;
    } expected[] = {
        {"traces/thesis_90.csv", NULL, TRACE_THESIS, 90, 0, 12514},
        {"traces/thesis_60.csv", NULL, TRACE_THESIS, 60, 0, 8966},
        {"traces/philly_gavel_vc.csv.gz", NULL, TRACE_PHILLY_VC, 15264, 0, 10817570},
        {"traces/philly_gavel_vc.csv.gz", "6214e9", TRACE_PHILLY_VC, 2000, 0, 4184082},
        {"traces/alibaba_gpu2023_pods.csv", NULL, TRACE_PODS, 7063, 1, 12901761},
        {"traces/tiresias_60_job.csv", NULL, TRACE_TIRESIAS, 60, 0, 1779},
        {"traces/philly_runtimes.csv.gz", NULL, TRACE_RUN_TIMES, 83152, 2, 0},
    };

    for (size_t i = 0; i < array_size(expected); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, expected[i].name);
        struct trace_load_options options = {.workloads = &workloads, .vc = expected[i].vc, .run_times = true};
        CLEANUP(trace_release) struct trace trace;

        fail_if(trace_load(&trace, path, &options, &trouble), trouble);
        assert_int_equal(trace.format, expected[i].format);
        assert_int_equal(trace.count, expected[i].jobs);
        assert_int_equal(trace.left_out, expected[i].left_out);
        assert_true(trace.items[trace.count - 1].arrival_ns / NS_PER_SEC == expected[i].last_s);
    }
}

TEST(test_thesis_traces_are_ours)
{
    static const char *const names[] = {"thesis_60.csv", "thesis_90.csv"};
    struct trace_load_options options = {.workloads = &workloads};

    for (size_t i = 0; i < array_size(names); i++) {
        CLEANUP(free_ptr) char *theirs = xasprintf("%s/traces/%s", directory, names[i]);
        CLEANUP(free_ptr) char *ours = xasprintf(CARMA_DATA "/traces/%s", names[i]);
        struct trace a, b;

        assert_int_equal(trace_load(&a, theirs, &options, NULL), 0);
        assert_int_equal(trace_load(&b, ours, &options, NULL), 0);
        assert_int_equal(a.count, b.count);
        for (size_t k = 0; k < a.count; k++)
            assert_true(a.items[k].arrival_ns == b.items[k].arrival_ns && a.items[k].workload == b.items[k].workload);
        trace_release(&a);
        trace_release(&b);
    }
}

static int setup(void **state)
{
    return workloads_read(&workloads, CARMA_DATA "/workloads.csv", NULL);
}

static int teardown(void **state)
{
    workloads_release(&workloads);
    return 0;
}

int main(int argc, char **argv)
{
    directory = argc > 1 ? argv[1] : "";
    if (access(directory, R_OK)) {
        printf("skipped: '%s' is not there: the published files lie outside the repository\n", directory);
        return SKIPPED;
    }
    return unit_tests_run("tests", setup, teardown);
}
