/* Workloads and traces: refused in one line, or in order and complete. */
#include <string.h>

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
        require(workload_need_bytes(w, 1) >= w->peak_bytes && w->peak_bytes >= 0);
    }
    workloads_release(&workloads);
}

static void check_trace(const char *text, size_t length)
{
    struct workloads workloads;
    struct trace_load_options options = {.workloads = &workloads, .run_times = true};
    struct trace trace;
    struct error err = {{0}};

    require(workloads_read_text(&workloads, "w.csv", some_workloads, sizeof some_workloads - 1, NULL) == 0);
    if (trace_load_text(&trace, "f.csv", text, length, &options, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.csv:", 6) == 0 && !trace.items);
    } else {
        require(trace.count > 0);
        for (size_t i = 1; i < trace.count; i++)
            require(trace.items[i].workload && trace.items[i].arrival_ns >= trace.items[i - 1].arrival_ns);
        trace_release(&trace);
    }
    workloads_release(&workloads);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    check_workloads((const char *)bytes, length);
    check_trace((const char *)bytes, length);
    return 0;
}
