/* carma history: jobs that have ended, the latest first, long after the queue has forgotten them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/history/ended.h"
#include "cli/show/csv_text.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

#define ROWS_UNASKED 20   /* of a table */
#define PAGE         1000 /* rows of one answer: the daemon's limit */

struct history_options {
    struct ended_options jobs;
    int64_t most; /* 0: not said */
};

static const struct argp_option options[] = {
    {"number", 'n', "N", 0, "the latest N (default 20; with --csv and --json all)", 0},
    ENDED_OPTIONS,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct history_options *history = state->input;
    struct error err;

    switch (key) {
    case 'n':
        return parse_integer(arg, 1, INT64_MAX, &history->most, &err) == 0 ? 0
                                                                           : cli_bad_usage(state, "-n: %s", err.text);
    default:
        return ended_parse(key, arg, state, &history->jobs);
    }
}

const struct argp history_argp = {
    .options = options,
    .parser = parse,
    .doc = "List jobs that have ended, the latest first: their wait time, their usage, their end. It knows "
           "them for as long as the setting history_retention says, by default two years."
           "\vPEAK is the most GPU memory that was observed of a job on one GPU. Energy is modelled (docs/metrics.md). "
           "'carma stats' sums up. The columns of --csv: docs/formats/cli.md.",
};

/* ---- The table ---- */

static const struct table_column columns[] = {
    {"ID", true, 0, 0, false},        {"NAME", false, 12, 0, false}, {"USER", false, 6, 5, false},
    {"ST", false, 0, 0, false},       {"GPUS", true, 0, 3, false},   {"WAITED", true, 0, 2, false},
    {"GPU HOURS", true, 0, 0, false}, {"PEAK", true, 0, 4, false},   {"ENERGY", true, 0, 1, false},
    {"ENDED", false, 0, 0, false},
};

/* Stands before the last one where a job has a project. */
static const struct table_column project_column = {"PROJECT", false, 6, 6, false};

static void add_row(struct table *table, const json_t *job, bool projects)
{
    CLEANUP(free_ptr) char *name = answer_safe_text(job, "name");
    CLEANUP(free_ptr) char *user = answer_safe_text(job, "user");
    CLEANUP(free_ptr) char *project = answer_safe_text(job, "account");
    CLEANUP(free_ptr) char *letter = answer_safe_text(job, "letter");
    CLEANUP(free_ptr) char *peak = answer_bytes(job, "peak_bytes");
    CLEANUP(free_ptr) char *ended = answer_time(answer_integer(job, "ended_ns", -1));
    const char *state = answer_text(job, "state"), *cause = answer_text(job, "exit_cause");
    bool caught = state && cause && strcmp(state, "COMPLETED") == 0 && strcmp(cause, "gpu_oom") == 0;
    int64_t wait_ns = answer_integer(job, "wait_ns", -1);
    char text[ANSWER_ENERGY + ENDED_TEXT + UNITS_TEXT];

    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(job, "id", 0));
    table_cell(table, STYLE_NONE, "%s", name);
    table_cell(table, STYLE_NONE, "%s", user);
    table_cell(table, answer_state_style(job), "%s", letter);
    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(job, "gpus", 0));
    table_cell(table, STYLE_NONE, "%s", wait_ns < 0 ? "-" : format_duration(wait_ns, text));
    table_cell(table, STYLE_NONE, "%s", ended_hours(answer_integer(job, "gpu_ns", 0), text));
    table_cell(table, STYLE_NONE, "%s", peak);
    table_cell(table, STYLE_NONE, "%s", answer_energy(answer_integer(job, "modelled_energy_mj", 0), text));
    if (projects)
        table_cell(table, STYLE_NONE, "%s", project);
    table_cell(table, STYLE_NONE, "%s%s%s", ended, caught ? ", after GPU memory had run out in it" : "",
               answer_integer(job, "moves", 0) ? ", was moved off its GPUs" : "");
}

static void print_table(const json_t *jobs, bool more)
{
    struct table_column shown[array_size(columns) + 1];
    size_t last = array_size(columns) - 1, i;
    bool projects = false;
    struct table *table;
    json_t *job;

    memcpy(shown, columns, sizeof columns);
    json_array_foreach (jobs, i, job)
        projects |= answer_text(job, "account") != NULL;
    if (projects)
        shown[last++] = project_column;
    shown[last++] = columns[array_size(columns) - 1];
    table = table_new(shown, last);
    json_array_foreach (jobs, i, job)
        add_row(table, job, projects);
    table_print(table);
    if (more)
        puts("there are more: -n N, or --since and --until");
}

/* ---- CSV ---- */

static const char csv_head[] =
    "id,user,uid,name,state,exit_cause,gpus,submitted,first_started,started,ended,wait_s,gpu_s,"
    "memory_gib_h,memory_measured_gib_h,modelled_energy_j,attempts,oom_crashes,handle_crashes,"
    "retries,reserved_bytes,reservation_source,estimate_bytes,estimator,peak_bytes,last_reserved_bytes,last_"
    "reservation_source,moves,account,tags";

static void put_name(struct strbuf *out, const json_t *job, const char *member)
{
    csv_put_text(out, answer_text(job, member));
    strbuf_puts(out, ",");
}

static void put_count(struct strbuf *out, const json_t *job, const char *member)
{
    if (json_is_integer(json_object_get(job, member)))
        strbuf_printf(out, "%" PRId64, answer_integer(job, member, 0));
    strbuf_puts(out, ",");
}

static void put_share(struct strbuf *out, const json_t *job, const char *member, double whole, int digits)
{
    if (json_is_integer(json_object_get(job, member)))
        strbuf_printf(out, "%.*f", digits, (double)answer_integer(job, member, 0) / whole);
    strbuf_puts(out, ",");
}

/* As anything reads it that reads CSV; where node time is not the wall clock, its seconds. */
static void put_moment(struct strbuf *out, const json_t *job, const char *member)
{
    int64_t ns = answer_integer(job, member, -1);
    time_t seconds = ns / NS_PER_SEC;
    char text[40];
    struct tm utc;

    if (ns >= 0 && nodetime_scale() != 1)
        strbuf_printf(out, "%.3f", (double)ns / 1e9);
    else if (ns >= 0 && gmtime_r(&seconds, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        strbuf_puts(out, text);
    strbuf_puts(out, ",");
}

static void print_csv(const json_t *jobs)
{
    json_t *job;
    size_t i;

    json_array_foreach (jobs, i, job) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        put_count(&out, job, "id");
        put_name(&out, job, "user");
        put_count(&out, job, "uid");
        put_name(&out, job, "name");
        put_name(&out, job, "state");
        put_name(&out, job, "exit_cause");
        put_count(&out, job, "gpus");
        put_moment(&out, job, "submitted_ns");
        put_moment(&out, job, "first_started_ns");
        put_moment(&out, job, "started_ns");
        put_moment(&out, job, "ended_ns");
        put_share(&out, job, "wait_ns", 1e9, 3);
        put_share(&out, job, "gpu_ns", 1e9, 3);
        put_share(&out, job, "memory_mib_ms", 1024 * 3.6e6, 6);
        put_share(&out, job, "memory_measured_mib_ms", 1024 * 3.6e6, 6);
        put_share(&out, job, "modelled_energy_mj", 1000, 3);
        put_count(&out, job, "attempts");
        put_count(&out, job, "oom_crashes");
        put_count(&out, job, "handle_crashes");
        put_count(&out, job, "retries");
        put_count(&out, job, "reserved_bytes");
        put_name(&out, job, "reservation_source");
        put_count(&out, job, "estimate_bytes");
        put_name(&out, job, "estimator");
        put_count(&out, job, "peak_bytes");
        put_count(&out, job, "last_reserved_bytes");
        put_name(&out, job, "last_reservation_source");
        put_count(&out, job, "moves");
        put_name(&out, job, "account");
        put_name(&out, job, "tags");
        out.text[out.length - 1] = '\0'; /* the last comma */
        puts(out.text);
    }
}

/* ---- Pages ---- */

static int64_t last_id(const json_t *jobs)
{
    return json_array_size(jobs) ? answer_integer(json_array_get(jobs, json_array_size(jobs) - 1), "id", 0) : 0;
}

/* One page, behind the job `after`. */
static int get_page(struct cli *cli, const struct history_options *history, int64_t rows, int64_t after, json_t **reply,
                    struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    char more[64];

    snprintf(more, sizeof more, after ? "limit=%" PRId64 "&after=%" PRId64 : "limit=%" PRId64, rows, after);
    strbuf_puts(&path, "/v1/history");
    ended_put_query(&path, &history->jobs, more);
    return cli_call(cli, "GET", path.text, NULL, reply, err);
}

/* CSV is printed page by page: a million jobs need not fit the memory. */
static int print_all(struct cli *cli, const struct history_options *history)
{
    CLEANUP(json_release) json_t *all = json_array();
    bool table = !history->jobs.csv && !history->jobs.json, more = true;
    int64_t left = history->most ? history->most : table ? ROWS_UNASKED : INT64_MAX, after = 0, now_ns = 0;
    struct error err;

    if (history->jobs.csv)
        puts(csv_head);
    while (more && left > 0) {
        CLEANUP(json_release) json_t *reply = NULL;
        json_t *jobs;

        if (get_page(cli, history, left < PAGE ? left : PAGE, after, &reply, &err))
            return cli_fail("%s", err.text);
        jobs = json_object_get(reply, "jobs");
        now_ns = answer_integer(reply, "now_ns", 0);
        left -= (int64_t)json_array_size(jobs);
        after = last_id(jobs);
        more = answer_true(reply, "more") && after;
        if (history->jobs.csv)
            print_csv(jobs);
        else
            json_array_extend(all, jobs);
    }
    if (history->jobs.json) {
        json_t *reply = json_pack("{s:I, s:b, s:O}", "now_ns", (json_int_t)now_ns, "more", more, "jobs", all);
        cli_print_json(moment_twin(reply, "now_ns"));
        json_decref(reply);
    } else if (table) {
        print_table(all, more);
    }
    return CLI_OK;
}

int cmd_history(struct cli *cli, int argc, char **argv)
{
    struct history_options history = {0};
    int status;

    ended_init(&history.jobs);
    return cli_parse(cli, argc, argv, &history, &status) ? print_all(cli, &history) : status;
}
