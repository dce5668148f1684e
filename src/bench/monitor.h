/* carma bench monitor: the cost of watching a GPU, by source (the thesis's Table 3.2 and Figures 3.2 to 3.4). */
#ifndef CARMA_BENCH_MONITOR_H
#define CARMA_BENCH_MONITOR_H

#include <jansson.h>

#include "base/strbuf.h"
#include "bench/run.h"

#define BENCH_REPEATS_MAX 100

enum bench_load { BENCH_LIGHT, BENCH_HEAVY, BENCH_LOADS };

const char *bench_load_name(enum bench_load load); /* "light", "heavy" */

struct bench_monitor {
    struct bench_setup setup;
    char *commands[BENCH_LOADS]; /* owned */
    size_t repeats;
    struct bench_cell {
        bool present;
        char why[sizeof(struct error)]; /* it is not */
        struct bench_run *runs;         /* owned: one for each repeat, where it is */
    } cells[BENCH_LOADS][BENCH_SOURCES];
};

/* Runs every load beside every source that is present, in turn, `repeats` times. -ENODEV: no GPU; else as bench_run().
 * `show` is told before each run. */
int bench_monitor_measure(struct bench_monitor *bench,
                          void (*show)(enum bench_load load, enum bench_source source, size_t repeat, size_t repeats),
                          struct error *err);
void bench_monitor_release(struct bench_monitor *bench);

/* Means over the repeats. */
struct bench_summary {
    double epoch_s, after_s;
    double ratio; /* to the run of the same repeat without a tool */
    double job_cpu, tool_cpu;
    double job_memory_bytes, tool_memory_bytes, logged_bytes;
    double metrics[GPU_METRIC_COUNT]; /* -1: none */
};
struct bench_summary bench_monitor_summary(const struct bench_monitor *bench, enum bench_load load,
                                           enum bench_source source);

json_t *bench_monitor_json(const struct bench_monitor *bench); /* docs/formats/cli.md */
void bench_monitor_table(const struct bench_monitor *bench, int width, bool colour, struct strbuf *out);

#endif
