/* Workload traces: which workload is submitted when. The format: docs/formats/trace.md. */
#ifndef CARMA_TRACE_TRACE_H
#define CARMA_TRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/workloads.h"

struct trace_job {
    int64_t arrival_ns;              /* node time after the trace's begin; never less than the row before */
    const struct workload *workload; /* borrowed from the workloads that the trace was read with */
    unsigned line;
};

struct trace {
    struct trace_job *items; /* owned */
    size_t count;            /* at least one */
};

/* Reads a file; on an error *trace is empty and the text says FILE:LINE, the value and the remedy. `workloads` must
 * outlive the trace. */
int trace_read(struct trace *trace, const char *path, const struct workloads *workloads, struct error *err);
int trace_read_text(struct trace *trace, const char *path, const char *text, size_t length,
                    const struct workloads *workloads, struct error *err);
void trace_release(struct trace *trace);

#endif
