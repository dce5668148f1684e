/* One run of a command beside something that watches it, for `carma bench monitor`. */
#ifndef CARMA_BENCH_RUN_H
#define CARMA_BENCH_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/usage.h"
#include "gpu/reading.h"

/* The watching tools. */
enum bench_source {
    BENCH_NONE,
    BENCH_UTILIZATION, /* carma-monitor with NVML alone, GPM left out */
    BENCH_GPM,         /* carma-monitor with NVML and GPM */
    BENCH_DCGM,        /* carma-monitor with NVML and DCGM, GPM left out */
    BENCH_NSYS,        /* the command under Nsight Systems */
    BENCH_PYTORCH,     /* the command under PyTorch's own profiler */
    BENCH_SOURCES
};

const char *bench_source_name(enum bench_source source); /* "none", "utilization", ..., "pytorch" */

bool bench_simulated(void); /* on a virtual node */

struct bench_setup {
    const char *library;     /* NVML; NULL: the usual */
    const char *dcgm;        /* DCGM's library; NULL: the usual */
    const char *directory;   /* for the runs' output */
    int64_t period_ns;       /* node time between two looks */
    const char *wanted;      /* index or UUID of the GPU that was asked for; NULL: the first that jobs can use */
    char gpu[GPU_UUID_SIZE]; /* the GPU that the command runs on and that is shown; "": unknown */
    char gpu_name[GPU_NAME_SIZE];
    const volatile sig_atomic_t *interrupted; /* the number of the signal that asked to stop; 0: none did */
};

/* A look at the host during a run: its use until then, at that moment. */
struct bench_sample {
    double at_s; /* node time since the command began */
    double job_cpu_s, tool_cpu_s;
    int64_t job_memory_bytes, tool_memory_bytes;
};

struct bench_run {
    double epoch_s;           /* node time from the command's start to its end */
    double after_s;           /* node time from there until the watching tool was done as well */
    double job_cpu, tool_cpu; /* cores in use, mean: of the command until its end, of the tool until its own */
    int64_t job_memory_bytes, tool_memory_bytes; /* resident, the most at one time */
    int64_t logged_bytes;                        /* the tool's output */
    double metrics[GPU_METRIC_COUNT];            /* as the source has them, means of the run; -1: none */
    struct bench_sample *samples;                /* owned */
    size_t sample_count;
};

/* Whether the source can watch `command` here; else *err says why not. The first look of carma-monitor's finds
 * setup->gpu and ->gpu_name. */
bool bench_source_present(struct bench_setup *setup, enum bench_source source, const char *command, struct error *err);

/* Runs `command` by /bin/sh, `name` being that of the files that stay of it. -EINTR: interrupted; -ECHILD: the
 * command failed; others: it could not be run. Nothing is left running. */
int bench_run(const struct bench_setup *setup, enum bench_source source, const char *name, const char *command,
              struct bench_run *run, struct error *err);
void bench_run_release(struct bench_run *run);

#endif
