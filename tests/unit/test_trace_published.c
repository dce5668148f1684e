/* Usage: test_trace_published DIRECTORY: the published files as they stand; skipped where they are not. */
#include "unit.h"

#include "trace/trace.h"

#define SKIPPED 77

static const char *directory;
static struct workloads workloads;

static const struct {
    const char *name, *vc;
    enum trace_format format;
    size_t jobs, left_out;
    int64_t last_s;
} traces_rows[] = {
    {"traces/thesis_90.csv", NULL, TRACE_THESIS, 90, 0, 12514},
    {"traces/thesis_60.csv", NULL, TRACE_THESIS, 60, 0, 8966},
    {"traces/philly_gavel_vc.csv.gz", NULL, TRACE_PHILLY_VC, 15264, 0, 10817570},
    {"traces/philly_gavel_vc.csv.gz", "6214e9", TRACE_PHILLY_VC, 2000, 0, 4184082},
    {"traces/alibaba_gpu2023_pods.csv", NULL, TRACE_PODS, 7063, 1, 12901761},
    {"traces/tiresias_60_job.csv", NULL, TRACE_TIRESIAS, 60, 0, 1779},
    {"traces/philly_runtimes.csv.gz", NULL, TRACE_RUN_TIMES, 83152, 2, 0},
};

EACH_ROW(TEST, test_traces, traces_rows)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, row->name);
    struct trace_load_options options = {.workloads = &workloads, .vc = row->vc, .run_times = true};
    CLEANUP(trace_release) struct trace trace;

    fail_if(trace_load(&trace, path, &options, &trouble), trouble);
    assert_int_equal(trace.format, row->format);
    assert_int_equal(trace.count, row->jobs);
    assert_int_equal(trace.left_out, row->left_out);
    assert_true(trace.items[trace.count - 1].arrival_ns / NS_PER_SEC == row->last_s);
}

static const char *const thesis_traces_are_ours[] = {"thesis_60.csv", "thesis_90.csv"};

EACH_ROW(TEST, test_thesis_traces_are_ours, thesis_traces_are_ours)
{
    struct trace_load_options options = {.workloads = &workloads};
    CLEANUP(free_ptr) char *theirs = xasprintf("%s/traces/%s", directory, *row);
    CLEANUP(free_ptr) char *ours = xasprintf(CARMA_DATA "/traces/%s", *row);
    struct trace a, b;

    assert_int_equal(trace_load(&a, theirs, &options, NULL), 0);
    assert_int_equal(trace_load(&b, ours, &options, NULL), 0);
    assert_int_equal(a.count, b.count);
    for (size_t k = 0; k < a.count; k++)
        assert_true(a.items[k].arrival_ns == b.items[k].arrival_ns && a.items[k].workload == b.items[k].workload);
    trace_release(&a);
    trace_release(&b);
}

static int setup(void **state)
{
    return workloads_read(&workloads, CARMA_DATA "/workloads.csv", NULL);
}

AROUND(teardown)
{
    workloads_release(&workloads);
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
