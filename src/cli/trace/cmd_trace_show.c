/* carma trace show: a trace's demand. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/install.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/picture.h"
#include "cli/show/table.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"
#include "trace/demand.h"
#include "trace/trace.h"
#include "trace/workloads.h"

struct show_options {
    const char *path;
    const char *workloads;
    const char *vc;
    const char *plot;
    int64_t bin_ns; /* 0: a round length */
    bool json;
};

#define BIN_MAX_NS (INT64_C(1000000000) * NS_PER_SEC) /* as long as a trace may be */

enum { KEY_WORKLOADS = 0x200, KEY_VC, KEY_PLOT, KEY_BIN };

static const struct argp_option options[] = {
    {"vc", KEY_VC, "ID", 0, "only the jobs of one virtual cluster", 0},
    {"bin", KEY_BIN, "TIME", 0, "length of the time bins, e.g. 10m, 6h, 1d (default: at most 24 of them)", 0},
    {"plot", KEY_PLOT, "FILE.svg", 0, "also draw it there (needs python3-matplotlib)", 0},
    {"workloads", KEY_WORKLOADS, "FILE", 0, "the workloads that the trace names (default: the installed ones)", 0},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON (docs/formats/cli.md)", 0},
    {0},
};

static error_t take_bin(struct show_options *show, const char *arg, struct argp_state *state)
{
    struct error err;

    if (parse_duration(arg, &show->bin_ns, &err))
        return cli_bad_usage(state, "bin: %s", err.text);
    if (show->bin_ns < NS_PER_SEC || show->bin_ns > BIN_MAX_NS)
        return cli_bad_usage(state, "bin '%.40s' is out of range: from a second to 1e9 seconds", arg);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct show_options *show = state->input;

    switch (key) {
    case KEY_VC:
        show->vc = arg;
        return 0;
    case KEY_BIN:
        return take_bin(show, arg, state);
    case KEY_PLOT:
        show->plot = arg;
        return 0;
    case KEY_WORKLOADS:
        show->workloads = arg;
        return 0;
    case CLI_JSON_KEY:
        show->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (show->path)
            return cli_bad_usage(state, "one trace at a time: '%.40s' is too much", arg);
        show->path = arg;
        return 0;
    case ARGP_KEY_END:
        return show->path ? 0 : cli_bad_usage(state, "which trace? name its file");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp trace_show_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Show the demand of a trace: when its jobs arrive, how long they run, and how many GPUs they take. Also how "
           "many GPUs would be busy if no job ever waited."
           "\vFILE is in one of the formats of docs/formats/trace.md, gzip-packed or not.",
};

static const char *const quantile_names[DEMAND_QUANTILES] = {"min", "p25", "p50", "p75", "p90", "p99", "max"};

static bool has_classes(const struct trace_demand *demand)
{
    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++)
        if (demand->class_jobs[c])
            return true;
    return false;
}

static json_t *run_times_json(const struct trace_demand *demand)
{
    json_t *run_times = json_pack("{s:f}", "mean", demand->run_mean_s);

    for (size_t q = 0; q < DEMAND_QUANTILES; q++)
        json_object_set_new(run_times, quantile_names[q], json_real(demand->run_s[q]));
    return run_times;
}

static json_t *widths_json(const struct trace_demand *demand)
{
    json_t *widths = json_array();

    for (size_t i = 0; i < demand->width_count; i++)
        json_array_append_new(widths, json_pack("{s:I, s:I}", "gpus", (json_int_t)demand->widths[i].gpus, "jobs",
                                                (json_int_t)demand->widths[i].jobs));
    return widths;
}

static json_t *classes_json(const struct trace_demand *demand)
{
    json_t *classes = json_object();

    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++)
        json_object_set_new(classes, workload_class_name((enum workload_class)c),
                            json_integer((json_int_t)demand->class_jobs[c]));
    return classes;
}

static json_t *bins_json(const struct trace_demand *demand)
{
    json_t *bins = json_array();

    for (size_t i = 0; i < demand->bin_count; i++) {
        double from_s = (double)(demand->first_ns + (int64_t)i * demand->bin_ns) / 1e9;
        json_array_append_new(bins, json_pack("{s:f, s:I, s:f}", "from_s", from_s, "arrivals",
                                              (json_int_t)demand->bins[i].arrivals, "gpus_wanted_mean",
                                              demand->bins[i].gpus_wanted));
    }
    return bins;
}

static json_t *report_of(const struct show_options *show, const struct trace *trace, const struct trace_demand *demand)
{
    CLEANUP(free_ptr) char *name = term_escape(show->path);
    json_t *report = json_object();

    json_object_set_new(report, "trace", json_string(name));
    if (show->vc)
        json_object_set_new(report, "vc", json_string(show->vc));
    json_object_set_new(report, "format", json_string(trace_format_name(trace->format)));
    json_object_set_new(report, "jobs", json_integer((json_int_t)demand->jobs));
    json_object_set_new(report, "left_out", json_integer((json_int_t)trace->left_out));
    json_object_set_new(report, "run_time_s", run_times_json(demand));
    if (has_classes(demand))
        json_object_set_new(report, "classes", classes_json(demand));
    if (trace->format != TRACE_RUN_TIMES) {
        json_object_set_new(report, "gpus", widths_json(demand));
        json_object_set_new(report, "gpu_hours", json_real(demand->gpu_seconds / 3600));
        json_object_set_new(report, "first_arrival_s", json_real((double)demand->first_ns / 1e9));
        json_object_set_new(report, "last_arrival_s", json_real((double)demand->last_ns / 1e9));
        json_object_set_new(report, "gpus_wanted_mean", json_real(demand->gpus_wanted_mean));
        json_object_set_new(report, "gpus_wanted_max", json_real(demand->gpus_wanted_max));
        json_object_set_new(report, "bin_s", json_real((double)demand->bin_ns / 1e9));
        json_object_set_new(report, "bins", bins_json(demand));
    }
    return report;
}

/* As much as fits in a few lines. */
static void format_summary(const struct trace *trace, const struct trace_demand *demand, struct strbuf *out)
{
    char first[UNITS_TEXT], last[UNITS_TEXT];

    strbuf_printf(out, "Jobs         %zu (%s)", demand->jobs, trace_format_name(trace->format));
    if (trace->left_out)
        strbuf_printf(out, "; left out: %zu that never ran", trace->left_out);
    strbuf_puts(out, "\n");
    if (trace->format != TRACE_RUN_TIMES) {
        strbuf_printf(out, "Arrivals     from %s to %s\n", format_duration(demand->first_ns, first),
                      format_duration(demand->last_ns, last));
        strbuf_printf(out, "GPU time     %.1f h\n", demand->gpu_seconds / 3600);
        strbuf_printf(out, "GPUs wanted  %.1f on average until the last arrival, %.1f at most\n",
                      demand->gpus_wanted_mean, demand->gpus_wanted_max);
    }
    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT && has_classes(demand); c++)
        strbuf_printf(out, "%s%s %zu (%.0f%%)%s", c ? ", " : "Workloads    ",
                      workload_class_name((enum workload_class)c), demand->class_jobs[c],
                      100.0 * (double)demand->class_jobs[c] / (double)demand->jobs,
                      c + 1 < WORKLOAD_CLASS_COUNT ? "" : "\n");
    strbuf_puts(out, "\n");
}

static void format_run_times(const struct trace_demand *demand, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"RUN TIME", false, 0, 0}, {"MEAN", true, 0, 0}, {"MIN", true, 0, 2}, {"P25", true, 0, 3}, {"P50", true, 0, 0},
        {"P75", true, 0, 3},       {"P90", true, 0, 1},  {"P99", true, 0, 4}, {"MAX", true, 0, 0},
    };
    struct table *table = table_new(columns, array_size(columns));
    char text[UNITS_TEXT];

    table_cell(table, STYLE_NONE, "%s", "");
    table_cell(table, STYLE_NONE, "%s", format_duration((int64_t)(demand->run_mean_s * 1e9), text));
    for (size_t q = 0; q < DEMAND_QUANTILES; q++)
        table_cell(table, STYLE_NONE, "%s", format_duration((int64_t)(demand->run_s[q] * 1e9), text));
    table_format(table, width, colour, out);
    table_free(table);
}

static void format_widths(const struct trace_demand *demand, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {{"GPUS", true, 0, 0}, {"JOBS", true, 0, 0}, {"", true, 0, 0}};
    struct table *table = table_new(columns, array_size(columns));

    for (size_t i = 0; i < demand->width_count; i++) {
        table_cell(table, STYLE_NONE, "%" PRIu32, demand->widths[i].gpus);
        table_cell(table, STYLE_NONE, "%zu", demand->widths[i].jobs);
        table_cell(table, STYLE_NONE, "%.1f%%", 100.0 * (double)demand->widths[i].jobs / (double)demand->jobs);
    }
    strbuf_puts(out, "\n");
    table_format(table, width, colour, out);
    table_free(table);
}

#define BAR_WIDTH 24

static void format_bins(const struct trace_demand *demand, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"FROM", true, 0, 0},        {"ARRIVALS", true, 0, 0}, {"", false, 0, 2},
        {"GPUS WANTED", true, 0, 0}, {"", false, 0, 1},
    };
    struct table *table = table_new(columns, array_size(columns));
    double most_gpus = 0, most_jobs = 0;
    char from[UNITS_TEXT];

    for (size_t i = 0; i < demand->bin_count; i++) {
        most_gpus = demand->bins[i].gpus_wanted > most_gpus ? demand->bins[i].gpus_wanted : most_gpus;
        most_jobs = (double)demand->bins[i].arrivals > most_jobs ? (double)demand->bins[i].arrivals : most_jobs;
    }
    for (size_t i = 0; i < demand->bin_count; i++) {
        const struct demand_bin *bin = &demand->bins[i];
        CLEANUP(free_ptr) char *jobs = term_bar((double)bin->arrivals, most_jobs, BAR_WIDTH);
        CLEANUP(free_ptr) char *gpus = term_bar(bin->gpus_wanted, most_gpus, BAR_WIDTH);

        table_cell(table, STYLE_NONE, "%s", format_duration(demand->first_ns + (int64_t)i * demand->bin_ns, from));
        table_cell(table, STYLE_NONE, "%zu", bin->arrivals);
        table_cell(table, STYLE_BLUE, "%s", jobs);
        table_cell(table, STYLE_NONE, "%.1f", bin->gpus_wanted);
        table_cell(table, STYLE_BLUE, "%s", gpus);
    }
    strbuf_puts(out, "\n");
    table_format(table, width, colour, out);
    table_free(table);
}

static void print_tables(const struct trace *trace, const struct trace_demand *demand)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    int width = term_width(stdout);
    bool colour = term_colour(stdout);

    format_summary(trace, demand, &out);
    format_run_times(demand, width, colour, &out);
    if (trace->format != TRACE_RUN_TIMES) {
        format_widths(demand, width, colour, &out);
        format_bins(demand, width, colour, &out);
    }
    fputs(out.text, stdout);
}

static int show_trace(const struct show_options *show, const struct trace *trace)
{
    CLEANUP(json_release) json_t *report = NULL;
    struct trace_demand demand;
    struct error err;
    int status = CLI_OK;

    if (trace_demand(&demand, trace, show->bin_ns, &err))
        return cli_fail("%s: %s", show->path, err.text);
    report = report_of(show, trace, &demand);
    if (show->plot && picture_draw(report, show->plot, &err))
        status = cli_fail("%s", err.text);
    else if (show->json)
        cli_print_json(report);
    else
        print_tables(trace, &demand);
    trace_demand_release(&demand);
    return status;
}

int cmd_trace_show(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char *installed = install_path("share/carma/workloads.csv");
    struct show_options show = {0};
    struct workloads workloads = {0};
    struct trace trace = {0};
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &show, &status))
        return status;
    struct trace_load_options load = {.workloads = &workloads, .vc = show.vc, .run_times = true};
    if (workloads_read(&workloads, show.workloads ? show.workloads : installed, &err) ||
        trace_load(&trace, show.path, &load, &err))
        status = cli_fail("%s", err.text);
    else
        status = show_trace(&show, &trace);
    trace_release(&trace);
    workloads_release(&workloads);
    return status;
}
