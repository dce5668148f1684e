/* Workloads and traces of any format, packed or not: refused in one line, or in order, complete, fit to build from. */
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "trace/build.h"
#include "trace/demand.h"
#include "trace/trace.h"

static const char some_workloads[] = "id,gpus,peak_mib,resident_mib,solo_runtime_s,sm_activity\n"
                                     "resnet,1,5262,4783,2255,0.622\n"
                                     "vgg,1,8222,6807,2961,0.86\n";

static void check_workloads(const char *text, size_t length)
{
    struct workloads workloads;
    struct error err = {{0}};

    if (workloads_read_text(&workloads, "f.csv", text, length, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.csv:", 6) == 0 && !workloads.items);
        return;
    }
    for (size_t i = 0; i < workloads.count; i++) {
        const struct workload *w = &workloads.items[i];
        require(workloads_find(&workloads, w->id) == w);
        require(w->gpus >= 1 && w->gpus <= WORKLOAD_MAX_GPUS && w->solo_runtime_ns > 0);
        require(w->smact_permille[1] >= 0 && w->smact_permille[1] <= 1000);
        require(w->smocc_permille >= -1 && w->smocc_permille <= 1000 && workload_class(w) < WORKLOAD_CLASS_COUNT);
        require(workload_need_bytes(w, 1) >= w->peak_bytes && w->peak_bytes >= 0);
    }
    workloads_release(&workloads);
}

static void check_jobs(const struct trace *trace)
{
    require(trace->count > 0 && trace->format < TRACE_FORMAT_COUNT);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->items[i];
        require(job->arrival_ns >= (i ? trace->items[i - 1].arrival_ns : 0));
        require(job->gpus >= 1 && job->gpus <= TRACE_MAX_GPUS && trace_job_duration_ns(job) > 0);
        require(job->gpu_permille >= 1 && job->gpu_permille <= 1000 && job->line > 0);
        require(!job->workload == (trace->format != TRACE_CARMA && trace->format != TRACE_THESIS));
    }
}

static void check_demand(const struct trace *trace)
{
    CLEANUP(trace_demand_release) struct trace_demand demand;
    size_t arrivals = 0;

    require(trace_demand(&demand, trace, 0, NULL) == 0);
    for (size_t i = 0; i < demand.bin_count; i++) {
        arrivals += demand.bins[i].arrivals;
        require(demand.bins[i].gpus_wanted >= -1e-6 && demand.bins[i].gpus_wanted <= demand.gpus_wanted_max + 1e-6);
    }
    require(arrivals == trace->count);
}

/* A built trace reads back. */
static void check_build(const struct trace *trace, const struct workloads *workloads)
{
    struct trace_load_options options = {.workloads = workloads};
    struct trace_build plan = {.to_ns = -1,
                               .max_gpus = 8,
                               .draw = !trace->items[0].workload,
                               .workloads = workloads,
                               .mix = {0, 1, 0},
                               .keep_gpus = true,
                               .keep_durations = true,
                               .stretch = 0.5,
                               .seed = 1};
    struct trace_build_report report;
    struct trace built, back;
    struct strbuf out = {0};
    struct error err = {{0}};

    if (trace_build(&built, trace, &plan, &report, &err)) {
        require_message(&err);
        return;
    }
    require(built.count + report.too_large == trace->count && built.items[0].arrival_ns == 0);
    trace_write(&built, &out);
    require(trace_load_text(&back, "b.csv", out.text, out.length, &options, NULL) == 0 && back.count == built.count);
    for (size_t i = 0; i < back.count; i++)
        require(back.items[i].arrival_ns == built.items[i].arrival_ns && back.items[i].gpus == built.items[i].gpus &&
                back.items[i].duration_ns == built.items[i].duration_ns);
    strbuf_release(&out);
    trace_release(&built);
    trace_release(&back);
}

static void check_trace(const char *text, size_t length)
{
    CLEANUP(workloads_release) struct workloads workloads;
    struct trace_load_options options = {.workloads = &workloads, .run_times = true};
    struct trace trace;
    struct error err = {{0}};

    require(workloads_read_text(&workloads, "w.csv", some_workloads, sizeof some_workloads - 1, NULL) == 0);
    if (trace_load_text(&trace, "f.csv", text, length, &options, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.csv:", 6) == 0 && !trace.items);
    } else {
        check_jobs(&trace);
        check_demand(&trace);
        check_build(&trace, &workloads);
        trace_release(&trace);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    check_workloads((const char *)bytes, length);
    check_trace((const char *)bytes, length);
    return 0;
}
