/* Workloads and traces of any format, packed or not: refused in one line, or in order and complete. */
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
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
        trace_release(&trace);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    check_workloads((const char *)bytes, length);
    check_trace((const char *)bytes, length);
    return 0;
}
