/* Workload traces: jobs, when they arrive, how many GPUs they take and for how long. Our own format and the published
 * ones that are read as they are: docs/formats/trace.md. */
#ifndef CARMA_TRACE_TRACE_H
#define CARMA_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/workloads.h"

#define TRACE_MAX_GPUS 4096 /* of a job */

enum trace_format {
    TRACE_CARMA,       /* arrival_s, workload, ... */
    TRACE_THESIS,      /* arrival_offset_s, workload_id */
    TRACE_PHILLY_VC,   /* vc, submit_s, gpus, ..., duration_s_v100 */
    TRACE_PODS,        /* submit_s, gpus, gpu_milli, duration_s, ... */
    TRACE_TIRESIAS,    /* job_id, num_gpu, submit_time, ..., duration, ... */
    TRACE_RUN_TIMES,   /* runtime_s: jobs that arrive at no known time */
    TRACE_FORMAT_COUNT /* not a format */
};

struct trace_job {
    int64_t arrival_ns;              /* node time after the trace's begin, from 0; never less than the job before */
    int64_t duration_ns;             /* alone on its GPUs; -1: the workload's solo run time */
    const struct workload *workload; /* borrowed from the workloads of the options; NULL: the format names none */
    uint32_t gpus;                   /* 1 .. TRACE_MAX_GPUS: the row's, else the workload's */
    uint32_t uid;                    /* its user; 0: unknown */
    int32_t gpu_permille;            /* the part of each GPU that it asked for; 1000: the whole, or not said */
    unsigned line;                   /* in the file */
};

struct trace {
    struct trace_job *items; /* owned */
    size_t count;            /* at least one */
    enum trace_format format;
    size_t left_out; /* rows of jobs that never ran: their run time is 0 */
};

struct trace_load_options {
    const struct workloads *workloads; /* those that the trace may name; must outlive it. NULL: it may name none */
    const char *vc;                    /* only this virtual cluster; NULL: all */
    bool run_times;                    /* also take TRACE_RUN_TIMES; else it is refused */
};

/* Reads a file, or, where there is none, the trace of that name in share/carma/traces. It may have any format, told
 * apart by its columns, packed by gzip or not. Jobs come in the order of their arrival. Formats that are published
 * unordered are sorted; in the others a row that goes back in time is refused. Arrivals stay as they are in the file:
 * the first need not be 0. On an error *trace is empty and the text says FILE:LINE, the value and the remedy. options
 * may be NULL. */
int trace_load(struct trace *trace, const char *path, const struct trace_load_options *options, struct error *err);

/* The same on `length` bytes that the caller has; `path` is the name in messages. */
int trace_load_text(struct trace *trace, const char *path, const char *text, size_t length,
                    const struct trace_load_options *options, struct error *err);

/* trace_load where every job has to have a workload: formats without are refused. */
int trace_read(struct trace *trace, const char *path, const struct workloads *workloads, struct error *err);

void trace_release(struct trace *trace);

/* A word for people and for JSON: "carma", "thesis", ... */
const char *trace_format_name(enum trace_format format);

/* How long the job runs alone on its GPUs; -1: neither the trace nor a workload says it. */
int64_t trace_job_duration_ns(const struct trace_job *job);

#endif
