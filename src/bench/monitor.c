#include "bench/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

const char *bench_load_name(enum bench_load load)
{
    return load == BENCH_LIGHT ? "light" : "heavy";
}

/* Every NVIDIA GPU has NVML's utilisation: without it there is no GPU. */
static int find_sources(struct bench_monitor *bench, struct error *err)
{
    for (int source = 0; source < BENCH_SOURCES; source++) {
        for (int load = 0; load < BENCH_LOADS; load++) {
            struct bench_cell *cell = &bench->cells[load][source];
            struct error why = {""};

            cell->present = bench_source_present(&bench->setup, source, bench->commands[load], &why);
            snprintf(cell->why, sizeof cell->why, "%s", why.text);
            if (source == BENCH_UTILIZATION && !cell->present)
                return error_set(err, ENODEV, "%s", why.text);
            if (*bench->setup.interrupted)
                return error_set(err, EINTR, "interrupted");
            if (cell->present)
                cell->runs = xcalloc(bench->repeats, sizeof *cell->runs);
        }
    }
    return 0;
}

/* Each repeat begins with another source, so that changes with time (temperature, caches) fall on all alike. */
int bench_monitor_measure(struct bench_monitor *bench,
                          void (*show)(enum bench_load load, enum bench_source source, size_t repeat, size_t repeats),
                          struct error *err)
{
    int rc = find_sources(bench, err);

    for (size_t repeat = 0; rc == 0 && repeat < bench->repeats; repeat++) {
        for (size_t i = 0; rc == 0 && i < (size_t)BENCH_LOADS * BENCH_SOURCES; i++) {
            enum bench_load load = i / BENCH_SOURCES;
            enum bench_source source = (i + repeat) % BENCH_SOURCES;
            struct bench_cell *cell = &bench->cells[load][source];
            CLEANUP(free_ptr)
            char *name = xasprintf("%s-%s-%zu", bench_load_name(load), bench_source_name(source), repeat + 1);

            if (!cell->present)
                continue;
            show(load, source, repeat + 1, bench->repeats);
            rc = bench_run(&bench->setup, source, name, bench->commands[load], &cell->runs[repeat], err);
            if (rc < 0)
                error_prefix(err, "the %s load beside %s", bench_load_name(load), bench_source_name(source));
        }
    }
    return rc;
}

void bench_monitor_release(struct bench_monitor *bench)
{
    for (int load = 0; load < BENCH_LOADS; load++) {
        for (int source = 0; source < BENCH_SOURCES; source++) {
            struct bench_cell *cell = &bench->cells[load][source];
            for (size_t repeat = 0; cell->runs && repeat < bench->repeats; repeat++)
                bench_run_release(&cell->runs[repeat]);
            free_ptr(&cell->runs);
        }
        free_ptr(&bench->commands[load]);
    }
}

struct bench_summary bench_monitor_summary(const struct bench_monitor *bench, enum bench_load load,
                                           enum bench_source source)
{
    const struct bench_run *none = bench->cells[load][BENCH_NONE].runs, *runs = bench->cells[load][source].runs;
    double share = 1.0 / (double)bench->repeats;
    struct bench_summary s = {0};

    for (size_t i = 0; i < bench->repeats; i++) {
        s.epoch_s += share * runs[i].epoch_s;
        s.after_s += share * runs[i].after_s;
        s.ratio += none[i].epoch_s > 0 ? share * runs[i].epoch_s / none[i].epoch_s : 0;
        s.job_cpu += share * runs[i].job_cpu;
        s.tool_cpu += share * runs[i].tool_cpu;
        s.job_memory_bytes += share * (double)runs[i].job_memory_bytes;
        s.tool_memory_bytes += share * (double)runs[i].tool_memory_bytes;
        s.logged_bytes += share * (double)runs[i].logged_bytes;
    }
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        int count = 0;
        for (size_t i = 0; i < bench->repeats; i++) {
            s.metrics[metric] += runs[i].metrics[metric] >= 0 ? runs[i].metrics[metric] : 0;
            count += runs[i].metrics[metric] >= 0;
        }
        s.metrics[metric] = count ? s.metrics[metric] / count : -1;
    }
    return s;
}
