/* carma stats: the resources that jobs have used, summed up by user, job name, time and more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/old_names.h"
#include "base/text/nearest.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/history/ended.h"
#include "cli/show/csv_text.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

/* The possible groups: as the request has it, the list of the answer, and the column. */
static const struct grouping {
    const char *by;
    const char *list;
    const char *title;
} groupings[] = {
    {"user", "users", "USER"},       {"account", "accounts", "ACCOUNT"}, {"name", "names", "NAME"},
    {"day", "days", "DAY"},          {"month", "months", "MONTH"},       {"state", "states", "STATE"},
    {"source", "sources", "SOURCE"},
};

struct stats_options {
    struct ended_options jobs;
    const struct grouping *grouping;
};

static const struct argp_option options[] = {
    {"by", 'b', "WHAT", 0,
     "sum up by user (the default), account, name, day, month, state, or reservation (the source of memory requests)",
     0},
    ENDED_OPTIONS,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct stats_options *stats = state->input;
    struct error err;

    switch (key) {
    case 'b':
        for (size_t i = 0; i < array_size(groupings); i++)
            if (strcmp(groupings[i].by, present_name(arg)) == 0) {
                stats->grouping = &groupings[i];
                return 0;
            }
        nearest_refuse(&err, "--by", arg, "user, account, name, day, month, state or source");
        return cli_bad_usage(state, "%s", err.text);
    default:
        return ended_parse(key, arg, state, &stats->jobs);
    }
}

const struct argp stats_argp = {
    .options = options,
    .parser = parse,
    .doc = "Sum up the usage of jobs: GPU hours, memory over time, energy, wait times, and how well their memory was "
           "reserved."
           "\vBy user alone, all jobs count that there ever were, running ones with their usage so far. With a span, a "
           "name or a state, or by something else, only ended jobs count, each whole in the day in which it ended. "
           "WAIT and P95 are the mean and the 95th percentile of the waits of ended jobs that history still has. "
           "RSVD/PEAK is the median of reserved over observed memory. UNDER is the share of jobs that used more than "
           "their reservation. Energy is modelled: no counter tells the jobs on a GPU apart "
           "(docs/metrics.md). The energy of GPUs without jobs, or for unmanaged processes, is below the users; all "
           "rows sum up to the GPUs' counters.",
};

/* ---- The table ---- */

static const struct table_column columns[] = {
    {NULL, false, 8, 0, false},       {"JOBS", true, 0, 0, false},      {"ENDED", true, 0, 9, false},
    {"GPU HOURS", true, 0, 0, false}, {"GIB HOURS", true, 0, 2, false}, {"ENERGY", true, 0, 0, false},
    {"WAIT", true, 0, 3, false},      {"P95", true, 0, 4, false},       {"OOM", true, 0, 1, false},
    {"RETRIES", true, 0, 7, false},   {"RSVD/PEAK", true, 0, 5, false}, {"UNDER", true, 0, 6, false},
};

static void time_cell(struct table *table, enum term_style style, int64_t ns)
{
    char text[UNITS_TEXT];

    table_cell(table, style, "%s", ns < 0 ? "-" : format_duration(ns, text));
}

static void add_row(struct table *table, enum term_style style, const char *label, const json_t *group)
{
    CLEANUP(free_ptr) char *under = answer_permille(group, "under_permille");
    int64_t ratio = answer_integer(group, "reserved_to_peak_permille", -1);
    char text[ANSWER_ENERGY + ENDED_TEXT];

    table_cell(table, style, "%s", label);
    table_cell(table, style, "%" PRId64, answer_integer(group, "jobs", 0));
    table_cell(table, style, "%" PRId64, answer_integer(group, "ended", 0));
    table_cell(table, style, "%s", ended_hours(answer_integer(group, "gpu_ns", 0), text));
    table_cell(table, style, "%s", ended_gib_hours(answer_integer(group, "memory_mib_ms", -1), text));
    table_cell(table, style, "%s", answer_energy(answer_integer(group, "modelled_energy_mj", 0), text));
    time_cell(table, style, answer_integer(group, "wait_mean_ns", -1));
    time_cell(table, style, answer_integer(group, "wait_p95_ns", -1));
    table_cell(table, style, "%" PRId64,
               answer_integer(group, "oom_crashes", 0) + answer_integer(group, "handle_crashes", 0));
    table_cell(table, style, "%" PRId64, answer_integer(group, "retries", 0));
    if (ratio < 0)
        table_cell(table, style, "-");
    else
        table_cell(table, style, "%.2f", (double)ratio / 1000);
    table_cell(table, style, "%s", under);
}

static void add_rest(struct table *table, const char *who, int64_t mj)
{
    char energy[ANSWER_ENERGY];

    if (mj <= 0)
        return;
    table_cell(table, STYLE_DIM, "%s", who);
    for (size_t i = 1; i < array_size(columns); i++)
        table_cell(table, STYLE_DIM, "%s", strcmp(columns[i].title, "ENERGY") == 0 ? answer_energy(mj, energy) : "-");
}

static void print_stats(const struct stats_options *stats, const json_t *reply)
{
    const json_t *groups = json_object_get(reply, stats->grouping->list), *total = json_object_get(reply, "total");
    struct table_column shown[array_size(columns)];
    struct table *table;
    json_t *group;
    size_t i;

    memcpy(shown, columns, sizeof shown);
    shown[0].title = stats->grouping->title;
    table = table_new(shown, array_size(shown));
    json_array_foreach (groups, i, group) {
        CLEANUP(free_ptr) char *label = answer_safe_text(group, stats->grouping->by);
        add_row(table, STYLE_NONE, label, group);
    }
    if (total && (json_array_size(groups) > 1 || answer_integer(reply, "left_out", 0)))
        add_row(table, STYLE_BOLD, "(all)", total);
    add_rest(table, "(nobody)", answer_integer(reply, "modelled_idle_mj", 0));
    add_rest(table, "(unmanaged)", answer_integer(reply, "modelled_unmanaged_mj", 0));
    table_print(table);
    if (answer_integer(reply, "left_out", 0))
        printf("%" PRId64 " more, with less GPU time, are in (all) only\n", answer_integer(reply, "left_out", 0));
    puts("energy is modelled");
}

/* ---- CSV ---- */

static void put_number(struct strbuf *out, const json_t *group, const char *member, double whole, int digits)
{
    strbuf_puts(out, ",");
    if (json_is_integer(json_object_get(group, member)))
        strbuf_printf(out, "%.*f", digits, (double)answer_integer(group, member, 0) / whole);
}

static void print_csv(const struct stats_options *stats, const json_t *reply)
{
    static const char *const states[] = {"COMPLETED", "FAILED",  "GPU_OOM",  "CANCELLED", "LOST",
                                         "REFUSED",   "TIMEOUT", "RETURNED", "EXPIRED"};
    json_t *group;
    size_t i;

    printf("%s,jobs,ended,completed,failed,gpu_oom,cancelled,lost,refused,timeout,returned,expired,gpu_s,memory_gib_h,"
           "modelled_energy_j,launched,wait_s,wait_p95_s,oom_crashes,handle_crashes,retries,compared,reserved_to_peak,"
           "under\n",
           stats->grouping->by);
    json_array_foreach (json_object_get(reply, stats->grouping->list), i, group) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        csv_put_text(&out, answer_text(group, stats->grouping->by));
        put_number(&out, group, "jobs", 1, 0);
        put_number(&out, group, "ended", 1, 0);
        for (size_t state = 0; state < array_size(states); state++)
            put_number(&out, json_object_get(group, "states"), states[state], 1, 0);
        put_number(&out, group, "gpu_ns", 1e9, 3);
        put_number(&out, group, "memory_mib_ms", 1024 * 3.6e6, 6);
        put_number(&out, group, "modelled_energy_mj", 1000, 3);
        put_number(&out, group, "launched", 1, 0);
        put_number(&out, group, "wait_ns", 1e9, 3);
        put_number(&out, group, "wait_p95_ns", 1e9, 3);
        put_number(&out, group, "oom_crashes", 1, 0);
        put_number(&out, group, "handle_crashes", 1, 0);
        put_number(&out, group, "retries", 1, 0);
        put_number(&out, group, "compared", 1, 0);
        put_number(&out, group, "reserved_to_peak_permille", 1000, 3);
        put_number(&out, group, "under_permille", 1000, 3);
        puts(out.text ? out.text : "");
    }
}

/* What sharing has saved on the whole node, where the daemon has simulated that. */
static void print_saved(struct cli *cli)
{
    CLEANUP(json_release) json_t *status = NULL;
    CLEANUP(free_ptr) char *text = NULL;
    struct error err;

    if (cli_call(cli, "GET", "/v1/status", NULL, &status, &err) || !json_object_get(status, "saved"))
        return;
    text = answer_safe_text(json_object_get(status, "saved"), "text");
    if (answer_integer(json_object_get(status, "saved"), "gpu_alone_ns", -1) >= 0)
        printf("simulated, of the node: sharing %s, against one job a GPU\n", text);
}

int cmd_stats(struct cli *cli, int argc, char **argv)
{
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(strbuf_release) struct strbuf path = {0};
    struct stats_options stats = {.grouping = &groupings[0]};
    struct error err;
    char by[32];
    int status;

    ended_init(&stats.jobs);
    if (!cli_parse(cli, argc, argv, &stats, &status))
        return status;
    snprintf(by, sizeof by, "by=%s", stats.grouping->by);
    strbuf_puts(&path, "/v1/stats");
    ended_put_query(&path, &stats.jobs, by);
    if (cli_call(cli, "GET", path.text, NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (stats.jobs.json) {
        cli_print_json(reply);
    } else if (stats.jobs.csv) {
        print_csv(&stats, reply);
    } else {
        print_stats(&stats, reply);
        print_saved(cli);
    }
    return CLI_OK;
}
