#include <inttypes.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/monitor.h"
#include "cli/show/table.h"

static json_t *number_or_null(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

/* How one run used the host over time. */
static json_t *samples_json(const struct bench_run *run)
{
    json_t *samples = json_array();

    for (size_t i = 0; i < run->sample_count; i++) {
        const struct bench_sample *sample = &run->samples[i];
        json_array_append_new(samples,
                              json_pack("[f, f, f, I, I]", sample->at_s, sample->job_cpu_s, sample->tool_cpu_s,
                                        (json_int_t)sample->job_memory_bytes, (json_int_t)sample->tool_memory_bytes));
    }
    return samples;
}

static json_t *source_json(const struct bench_monitor *bench, enum bench_load load, enum bench_source source)
{
    const struct bench_cell *cell = &bench->cells[load][source];
    json_t *object = json_pack("{s:s, s:b}", "source", bench_source_name(source), "present", cell->present);
    json_t *epochs = json_array();
    struct bench_summary s;

    if (!cell->present) {
        json_decref(epochs);
        json_object_set_new(object, "why", json_string(cell->why));
        return object;
    }
    s = bench_monitor_summary(bench, load, source);
    for (size_t i = 0; i < bench->repeats; i++)
        json_array_append_new(epochs, json_real(cell->runs[i].epoch_s));
    json_object_set_new(object, "epoch_s", json_real(s.epoch_s));
    json_object_set_new(object, "epochs_s", epochs);
    json_object_set_new(object, "ratio", json_real(s.ratio));
    json_object_set_new(object, "after_s", json_real(s.after_s));
    json_object_set_new(object, "job_cpu", json_real(s.job_cpu));
    json_object_set_new(object, "tool_cpu", json_real(s.tool_cpu));
    json_object_set_new(object, "job_memory_bytes", json_real(s.job_memory_bytes));
    json_object_set_new(object, "tool_memory_bytes", json_real(s.tool_memory_bytes));
    json_object_set_new(object, "logged_bytes", json_real(s.logged_bytes));
    json_object_set_new(object, "samples", samples_json(&cell->runs[0]));
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        json_object_set_new(object, gpu_metric_name(metric), number_or_null(s.metrics[metric]));
    return object;
}

json_t *bench_monitor_json(const struct bench_monitor *bench)
{
    json_t *loads = json_array();

    for (int load = 0; load < BENCH_LOADS; load++) {
        json_t *sources = json_array();
        for (int source = 0; source < BENCH_SOURCES; source++)
            json_array_append_new(sources, source_json(bench, load, source));
        json_array_append_new(loads, json_pack("{s:s, s:s, s:o}", "load", bench_load_name(load), "command",
                                               bench->commands[load], "sources", sources));
    }
    return json_pack("{s:s, s:s, s:b, s:f, s:I, s:f, s:o}", "gpu", bench->setup.gpu, "gpu_name", bench->setup.gpu_name,
                     "simulated", bench_simulated(), "time_scale", nodetime_scale(), "repeats",
                     (json_int_t)bench->repeats, "period_s", (double)bench->setup.period_ns / 1e9, "loads", loads);
}

static void percent_cell(struct table *table, double share)
{
    if (share >= 0)
        table_cell(table, STYLE_NONE, "%.1f%%", share * 100);
    else
        table_cell(table, STYLE_NONE, "-");
}

static void add_row(struct table *table, const struct bench_monitor *bench, enum bench_load load,
                    enum bench_source source)
{
    char text[UNITS_TEXT];
    struct bench_summary s;

    table_cell(table, STYLE_NONE, "%s", bench_load_name(load));
    table_cell(table, STYLE_NONE, "%s", bench_source_name(source));
    if (!bench->cells[load][source].present) {
        table_cell(table, STYLE_DIM, "not present");
        for (int i = 0; i < 9; i++)
            table_cell(table, STYLE_NONE, "-");
        return;
    }
    s = bench_monitor_summary(bench, load, source);
    table_cell(table, STYLE_NONE, "%.2f s", s.epoch_s);
    table_cell(table, STYLE_NONE, "%.3f", s.ratio);
    percent_cell(table, source == BENCH_NONE ? -1 : s.tool_cpu);
    table_cell(table, STYLE_NONE, "%s",
               s.tool_memory_bytes > 0 ? format_bytes((int64_t)s.tool_memory_bytes, text) : "-");
    table_cell(table, STYLE_NONE, "%s", source == BENCH_NONE ? "-" : format_bytes((int64_t)s.logged_bytes, text));
    percent_cell(table, s.job_cpu);
    table_cell(table, STYLE_NONE, "%s", format_bytes((int64_t)s.job_memory_bytes, text));
    percent_cell(table, s.metrics[GPU_SM_ACTIVITY]);
    percent_cell(table, s.metrics[GPU_SM_OCCUPANCY]);
    percent_cell(table, s.metrics[GPU_DRAM_ACTIVITY]);
}

void bench_monitor_table(const struct bench_monitor *bench, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"LOAD", false, 0, 0},    {"SOURCE", false, 0, 0},  {"EPOCH", true, 0, 0},     {"VS NONE", true, 0, 0},
        {"TOOL CPU", true, 0, 0}, {"TOOL MEM", true, 0, 0}, {"LOGGED", true, 0, 0},    {"JOB CPU", true, 0, 4},
        {"JOB MEM", true, 0, 5},  {"SM", true, 0, 1},       {"OCCUPANCY", true, 0, 2}, {"DRAM", true, 0, 3},
    };
    struct table *table = table_new(columns, array_size(columns));

    strbuf_printf(out, "%s %s, mean of %zu%s\n", bench->setup.gpu_name, bench->setup.gpu, bench->repeats,
                  bench_simulated() ? "; a virtual node: simulated" : "");
    for (int load = 0; load < BENCH_LOADS; load++)
        strbuf_printf(out, "%s: %s\n", bench_load_name(load), bench->commands[load]);
    strbuf_puts(out, "\n");
    for (int load = 0; load < BENCH_LOADS; load++)
        for (int source = 0; source < BENCH_SOURCES; source++)
            add_row(table, bench, load, source);
    table_format(table, width, colour, out);
    table_free(table);
    for (int source = 0; source < BENCH_SOURCES; source++) {
        for (int load = 0; load < BENCH_LOADS; load++) {
            const struct bench_cell *cell = &bench->cells[load][source];
            bool both = source != BENCH_PYTORCH; /* the others ask nothing of the command */
            if (!cell->present && (load == BENCH_LIGHT || !both))
                strbuf_printf(out, "%s%s%s: %s\n", bench_source_name(source), both ? "" : " ",
                              both ? "" : bench_load_name(load), cell->why);
        }
    }
}
