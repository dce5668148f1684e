/* carma stats: the resources that jobs have used, summed up by user, job name, time and more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/history/account.h"
#include "cli/show/csv_text.h"
#include "cli/show/table.h"
#include "cli/show/view.h"

/* The possible groups: as the request has it, the list of the answer, and the column. */
static const struct grouping {
    const char *by;
    const char *list;
    const char *title;
} groupings[] = {
    {"user", "users", "USER"},    {"name", "names", "NAME"},    {"day", "days", "DAY"},
    {"month", "months", "MONTH"}, {"state", "states", "STATE"}, {"claim", "claims", "CLAIM"},
};

struct stats_options {
    struct account_options jobs;
    const struct grouping *grouping;
};

static const struct argp_option options[] = {
    {"by", 'b', "WHAT", 0, "what to sum up by: user (the default), name, day, month, state, or claim (where memory claims "
     "come from)", 0},
    ACCOUNT_OPTIONS,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct stats_options *stats = state->input;

    switch (key) {
    case 'b':
        for (size_t i = 0; i < array_size(groupings); i++)
            if (strcmp(groupings[i].by, arg) == 0) {
                stats->grouping = &groupings[i];
                return 0;
            }
        return cli_bad_usage(state, "--by: '%.40s' is not known: say user, name, day, month, state or claim", arg);
    default:
        return account_parse(key, arg, state, &stats->jobs);
    }
}

const struct argp stats_argp = {
    .options = options,
    .parser = parse,
    .doc = "Sum up what jobs have used: GPU hours, memory over time, energy, waiting, and how well their memory was claimed."
           "\vBy user alone, all jobs count that there ever were, with what those have used that still run. Asked for a "
           "span, a name or a state, or by something else, the jobs that have ended count, each whole in the day in which "
           "it ended. CLAIM/PEAK is the median of what was booked over what was seen to be used; UNDER, the share of jobs "
           "that used more than was booked. Energy is modelled: no counter tells the jobs on a GPU apart "
           "(docs/metrics.md). What GPUs drew with nobody on them, or for processes that are no job's, is below the "
           "users; all rows sum up to the GPUs' counters.",
};

/* ---- The table ---- */

static const struct table_column columns[] = {
    {NULL, false, 8, 0, false},       {"JOBS", true, 0, 0, false},       {"ENDED", true, 0, 9, false},
    {"GPU HOURS", true, 0, 0, false}, {"GIB HOURS", true, 0, 2, false},  {"ENERGY", true, 0, 0, false},
    {"WAIT", true, 0, 3, false},      {"P95", true, 0, 4, false},        {"OOM", true, 0, 1, false},
    {"AGAIN", true, 0, 7, false},     {"CLAIM/PEAK", true, 0, 5, false}, {"UNDER", true, 0, 6, false},
};

static void time_cell(struct table *table, enum term_style style, int64_t ns)
{
    char text[UNITS_TEXT];

    table_cell(table, style, "%s", ns < 0 ? "-" : format_duration(ns, text));
}

/* Of a sum that has stopped at the largest number (a thousand jobs that wait come to that in four months) there is none. */
static int64_t mean_wait_ns(const json_t *group)
{
    int64_t launched = view_integer(group, "launched", 0), sum_ns = view_integer(group, "wait_ns", 0);

    return launched > 0 && sum_ns < INT64_MAX ? sum_ns / launched : -1;
}

static void add_row(struct table *table, enum term_style style, const char *label, const json_t *group)
{
    CLEANUP(free_ptr) char *under = view_permille(group, "under_permille");
    int64_t ratio = view_integer(group, "claim_to_peak_permille", -1);
    char text[VIEW_ENERGY + ACCOUNT_TEXT];

    table_cell(table, style, "%s", label);
    table_cell(table, style, "%" PRId64, view_integer(group, "jobs", 0));
    table_cell(table, style, "%" PRId64, view_integer(group, "ended", 0));
    table_cell(table, style, "%s", account_hours(view_integer(group, "gpu_ns", 0), text));
    table_cell(table, style, "%s", account_gib_hours(view_integer(group, "memory_mib_ms", -1), text));
    table_cell(table, style, "%s", view_energy(view_integer(group, "modelled_energy_mj", 0), text));
    time_cell(table, style, mean_wait_ns(group));
    time_cell(table, style, view_integer(group, "wait_p95_ns", -1));
    table_cell(table, style, "%" PRId64,
               view_integer(group, "oom_crashes", 0) + view_integer(group, "handle_crashes", 0));
    table_cell(table, style, "%" PRId64, view_integer(group, "recoveries", 0));
    if (ratio < 0)
        table_cell(table, style, "-");
    else
        table_cell(table, style, "%.2f", (double)ratio / 1000);
    table_cell(table, style, "%s", under);
}

static void add_rest(struct table *table, const char *who, int64_t mj)
{
    char energy[VIEW_ENERGY];

    if (mj <= 0)
        return;
    table_cell(table, STYLE_DIM, "%s", who);
    for (size_t i = 1; i < array_size(columns); i++)
        table_cell(table, STYLE_DIM, "%s", strcmp(columns[i].title, "ENERGY") == 0 ? view_energy(mj, energy) : "-");
}

static void print_stats(const struct stats_options *stats, const json_t *reply)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    const json_t *groups = json_object_get(reply, stats->grouping->list), *total = json_object_get(reply, "total");
    struct table_column shown[array_size(columns)];
    struct table *table;
    json_t *group;
    size_t i;

    memcpy(shown, columns, sizeof shown);
    shown[0].title = stats->grouping->title;
    table = table_new(shown, array_size(shown));
    json_array_foreach(groups, i, group)
    {
        CLEANUP(free_ptr) char *label = view_safe_text(group, stats->grouping->by);
        add_row(table, STYLE_NONE, label, group);
    }
    if (total && (json_array_size(groups) > 1 || view_integer(reply, "left_out", 0)))
        add_row(table, STYLE_BOLD, "(all)", total);
    add_rest(table, "(nobody)", view_integer(reply, "modelled_idle_mj", 0));
    add_rest(table, "(no job's)", view_integer(reply, "modelled_foreign_mj", 0));
    table_format(table, term_width(stdout), term_colour(stdout), &out);
    table_free(table);
    fputs(out.text, stdout);
    if (view_integer(reply, "left_out", 0))
        printf("%" PRId64 " more, with less GPU time, are in (all) only\n", view_integer(reply, "left_out", 0));
    puts("energy is modelled");
}

/* ---- CSV ---- */

static void put_number(struct strbuf *out, const json_t *group, const char *member, double whole, int digits)
{
    strbuf_puts(out, ",");
    if (json_is_integer(json_object_get(group, member)))
        strbuf_printf(out, "%.*f", digits, (double)view_integer(group, member, 0) / whole);
}

static void print_csv(const struct stats_options *stats, const json_t *reply)
{
    static const char *const states[] = {"COMPLETED", "FAILED", "GPU_OOM", "CANCELLED", "LOST", "REFUSED", "TIMEOUT"};
    json_t *group;
    size_t i;

    printf("%s,jobs,ended,completed,failed,gpu_oom,cancelled,lost,refused,timeout,gpu_s,memory_gib_h,modelled_energy_j,"
           "launched,wait_s,wait_p95_s,oom_crashes,handle_crashes,recoveries,compared,claim_to_peak,under\n",
           stats->grouping->by);
    json_array_foreach(json_object_get(reply, stats->grouping->list), i, group)
    {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        csv_put_text(&out, view_text(group, stats->grouping->by));
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
        put_number(&out, group, "recoveries", 1, 0);
        put_number(&out, group, "compared", 1, 0);
        put_number(&out, group, "claim_to_peak_permille", 1000, 3);
        put_number(&out, group, "under_permille", 1000, 3);
        puts(out.text ? out.text : "");
    }
}

int cmd_stats(struct cli *cli, int argc, char **argv)
{
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(strbuf_release) struct strbuf path = {0};
    struct stats_options stats = {.grouping = &groupings[0]};
    struct error err;
    char by[32];
    int status;

    account_init(&stats.jobs);
    if (!cli_parse(cli, argc, argv, &stats, &status))
        return status;
    snprintf(by, sizeof by, "by=%s", stats.grouping->by);
    strbuf_puts(&path, "/v1/stats");
    account_put_query(&path, &stats.jobs, by);
    if (cli_call(cli, "GET", path.text, NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (stats.jobs.json)
        cli_print_json(reply);
    else if (stats.jobs.csv)
        print_csv(&stats, reply);
    else
        print_stats(&stats, reply);
    return CLI_OK;
}
