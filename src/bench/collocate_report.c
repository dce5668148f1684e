/* The results as JSON (docs/formats/cli.md) and as a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/collocate.h"
#include "cli/show/table.h"

/* ---- JSON ---- */

static const char *const result_names[] = {"ok", "failed", "skipped"};

static json_t *known(double value, bool is_known)
{
    return is_known ? json_real(value) : json_null();
}

static json_t *metrics_json(const struct collocate_figures *figures)
{
    json_t *metrics = json_object();

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        if (figures->sources[metric] == GPU_SOURCE_NONE)
            continue;
        json_object_set_new(metrics, gpu_metric_name(metric),
                            json_pack("{s:f, s:s}", "mean", figures->metrics[metric], "source",
                                      gpu_source_name(figures->sources[metric])));
    }
    return metrics;
}

static json_t *jobs_json(const struct collocate_plan *plan, const struct collocate_run *run)
{
    json_t *jobs = json_array();

    for (size_t i = 0; i < run->count; i++) {
        const struct collocate_job *job = &run->jobs[i];
        double alone_s = collocate_alone_epoch_s(plan, job->command);
        json_array_append_new(
            jobs, json_pack("{s:s, s:o, s:f, s:i, s:o, s:o}", "command", plan->commands[job->command].name, "instance",
                            *job->instance ? json_string(job->instance) : json_null(), "seconds", (double)job->ns / 1e9,
                            "epochs", (int)job->epochs, "epoch_s", known(job->epoch_s, job->epoch_s > 0), "slowdown",
                            known(job->epoch_s / alone_s, job->epoch_s > 0 && alone_s > 0)));
    }
    return jobs;
}

static json_t *run_json(const struct collocate_plan *plan, const struct collocate_run *run)
{
    const struct collocate_figures *figures = &run->figures;
    json_t *object =
        json_pack("{s:s, s:b, s:s, s:i, s:s, s:o}", "mode", collocate_mode_name(run->mode), "alone", run->alone, "jobs",
                  run->label, "degree", (int)run->count, "result", result_names[run->result], "reason",
                  *run->reason ? json_string(run->reason) : json_null());
    double throughput = collocate_throughput(plan, run), serial_s = collocate_serial_s(plan, run);

    if (run->result == COLLOCATE_SKIPPED)
        return object;
    json_object_set_new(object, "each", jobs_json(plan, run));
    json_object_set_new(object, "total_s", json_real((double)run->total_ns / 1e9));
    if (run->result == COLLOCATE_FAILED)
        return object;
    json_object_set_new(object, "serial_s", known(serial_s, serial_s > 0));
    json_object_set_new(object, "throughput", known(throughput, throughput > 0));
    json_object_set_new(object, "metrics", metrics_json(figures));
    json_object_set_new(object, "memory_peak_bytes",
                        figures->memory_peak_bytes < 0 ? json_null() : json_integer(figures->memory_peak_bytes));
    json_object_set_new(object, "memory_before_bytes",
                        figures->memory_before_bytes < 0 ? json_null() : json_integer(figures->memory_before_bytes));
    json_object_set_new(object, "power_w", known(figures->power_w, figures->power_w >= 0));
    json_object_set_new(object, "energy_j", known(figures->energy_j, figures->energy_j >= 0));
    json_object_set_new(object, "energy_per_job_j",
                        known(figures->energy_j / (double)run->count, figures->energy_j >= 0));
    if (run->mode == COLLOCATE_MPS)
        json_object_set_new(object, "mps_observed", json_boolean(figures->mps_observed));
    return object;
}

static json_t *commands_json(const struct collocate_plan *plan)
{
    json_t *commands = json_array();

    for (size_t i = 0; i < plan->command_count; i++) {
        json_t *words = json_array();
        for (char **word = plan->commands[i].argv; *word; word++)
            json_array_append_new(words, json_string(*word));
        json_array_append_new(commands, json_pack("{s:s, s:o}", "name", plan->commands[i].name, "command", words));
    }
    return commands;
}

json_t *collocate_report(const struct collocate_plan *plan, const struct collocate_setup *setup)
{
    const char *uuid = setup->partitioned ? setup->parent : setup->gpu;
    const struct gpu_reading *gpu = collocate_watch_find(setup->watch, uuid);
    json_t *runs = json_array();

    for (size_t i = 0; i < plan->run_count; i++)
        json_array_append_new(runs, run_json(plan, &plan->runs[i]));
    return json_pack("{s:{s:s, s:s, s:o}, s:f, s:s, s:s, s:o, s:o}", "gpu", "uuid", uuid, "name", gpu ? gpu->name : "",
                     "total_bytes", gpu && gpu->valid & GPU_HAS_MEMORY ? json_integer(gpu->total_bytes) : json_null(),
                     "time_scale", nodetime_scale(), "epochs", setup->epoch_pattern ? "matched lines" : "equal parts",
                     "limits", setup->watch->latest->limits, "commands", commands_json(plan), "runs", runs);
}

/* ---- Table ---- */

static void seconds_cell(struct table *table, double seconds)
{
    char text[UNITS_TEXT];

    if (!(seconds > 0))
        table_cell(table, STYLE_DIM, "-");
    else if (seconds < 100)
        table_cell(table, STYLE_NONE, "%.3g s", seconds);
    else
        table_cell(table, STYLE_NONE, "%s", format_duration((int64_t)(seconds * 1e9), text));
}

static void share_cell(struct table *table, const struct collocate_figures *figures, enum gpu_metric metric)
{
    uint32_t source = figures->sources[metric];

    if (source == GPU_SOURCE_NONE)
        table_cell(table, STYLE_DIM, "-");
    else
        table_cell(table, STYLE_NONE, "%s%.0f%%", source == GPU_SOURCE_UTILIZATION ? "~" : "",
                   figures->metrics[metric] * 100);
}

static void bytes_cell(struct table *table, double bytes, bool is_known, const char *suffix)
{
    char text[UNITS_TEXT];

    if (is_known)
        table_cell(table, STYLE_NONE, "%s%s", format_bytes((int64_t)bytes, text), suffix);
    else
        table_cell(table, STYLE_DIM, "-");
}

static double mean_epoch_s(const struct collocate_run *run)
{
    double sum = 0;

    for (size_t i = 0; i < run->count; i++)
        sum += run->jobs[i].epoch_s;
    return sum / (double)run->count;
}

static double mean_slowdown(const struct collocate_plan *plan, const struct collocate_run *run)
{
    double sum = 0;

    for (size_t i = 0; i < run->count; i++) {
        double alone_s = collocate_alone_epoch_s(plan, run->jobs[i].command);
        if (!(alone_s > 0))
            return 0;
        sum += run->jobs[i].epoch_s / alone_s;
    }
    return sum / (double)run->count;
}

static void ratio_cell(struct table *table, double ratio)
{
    if (ratio > 0)
        table_cell(table, STYLE_NONE, "%.2f", ratio);
    else
        table_cell(table, STYLE_DIM, "-");
}

static void add_row(struct table *table, const struct collocate_plan *plan, const struct collocate_run *run)
{
    const struct collocate_figures *figures = &run->figures;
    double serial_s = collocate_serial_s(plan, run), total_s = (double)run->total_ns / 1e9;

    table_cell(table, STYLE_NONE, "%s", run->label);
    table_cell(table, STYLE_NONE, "%s", run->alone ? "alone" : collocate_mode_name(run->mode));
    seconds_cell(table, mean_epoch_s(run));
    ratio_cell(table, mean_slowdown(plan, run));
    ratio_cell(table, collocate_throughput(plan, run));
    seconds_cell(table, total_s);
    if (serial_s > 0 && run->count > 1)
        table_cell(table, STYLE_NONE, "%+.0f%%", (total_s / serial_s - 1) * 100);
    else
        table_cell(table, STYLE_DIM, "-");
    share_cell(table, figures, GPU_SM_ACTIVITY);
    bytes_cell(table, (double)figures->memory_peak_bytes, figures->memory_peak_bytes >= 0, "");
    bytes_cell(table, figures->metrics[GPU_PCIE_RX], figures->sources[GPU_PCIE_RX] != GPU_SOURCE_NONE, "/s");
    if (figures->power_w >= 0) {
        table_cell(table, STYLE_NONE, "%.0f W", figures->power_w);
        table_cell(table, STYLE_NONE, "%.3g kJ", figures->energy_j / (double)run->count / 1000);
    } else {
        table_cell(table, STYLE_DIM, "-");
        table_cell(table, STYLE_DIM, "-");
    }
}

/* A mode that is not to be had is told once. */
static bool told_before(const struct collocate_plan *plan, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        const struct collocate_run *run = &plan->runs[i];
        if (run->result == COLLOCATE_SKIPPED && run->mode == plan->runs[at].mode &&
            strcmp(run->reason, plan->runs[at].reason) == 0)
            return true;
    }
    return false;
}

static void tell_others(const struct collocate_plan *plan, struct strbuf *out)
{
    for (size_t i = 0; i < plan->run_count; i++) {
        const struct collocate_run *run = &plan->runs[i];
        if (run->result == COLLOCATE_SKIPPED && !told_before(plan, i))
            strbuf_printf(out, "%s: skipped: %s\n", collocate_mode_name(run->mode), run->reason);
        else if (run->result == COLLOCATE_FAILED)
            strbuf_printf(out, "%s, %s: failed: %s\n", run->label,
                          run->alone ? "alone" : collocate_mode_name(run->mode), run->reason);
    }
}

void collocate_table(const struct collocate_plan *plan, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"JOBS", false, 20, 0},     {"MODE", false, 0, 0},   {"EPOCH", true, 0, 0},  {"SLOWDOWN", true, 0, 4},
        {"THROUGHPUT", true, 0, 0}, {"TOTAL", true, 0, 3},   {"SERIAL", true, 0, 2}, {"SM ACT", true, 0, 0},
        {"MEMORY", true, 0, 1},     {"PCIE RX", true, 0, 5}, {"POWER", true, 0, 6},  {"ENERGY/JOB", true, 0, 0},
    };
    struct table *table = table_new(columns, array_size(columns));
    bool coarse = false;

    for (size_t i = 0; i < plan->run_count; i++) {
        const struct collocate_run *run = &plan->runs[i];
        if (run->result != COLLOCATE_OK)
            continue;
        coarse |= run->figures.sources[GPU_SM_ACTIVITY] == GPU_SOURCE_UTILIZATION;
        add_row(table, plan, run);
    }
    table_format(table, width, colour, out);
    table_free(table);
    if (coarse)
        strbuf_puts(out, "\n~ NVML's utilisation: the share of time with a kernel running, an upper bound\n");
    tell_others(plan, out);
    for (size_t i = 0; i < plan->run_count; i++) {
        const struct collocate_run *run = &plan->runs[i];
        if (run->result == COLLOCATE_OK && run->mode == COLLOCATE_MPS && !run->figures.mps_observed)
            strbuf_printf(out, "%s, mps: no MPS client was observed on the GPU: were these jobs under MPS?\n",
                          run->label);
    }
}
