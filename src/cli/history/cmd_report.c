/* carma report: what each user had of the GPUs for each project in a month, from the rows of the accounting. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/history/ended.h"
#include "cli/history/span.h"
#include "cli/show/answer.h"
#include "cli/show/csv_text.h"
#include "cli/show/table.h"

#define PAGE 1000 /* rows of one answer: the daemon's limit */

static const struct argp_option options[] = {ENDED_OPTIONS, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ended_options *jobs = state->input;
    int64_t first_ns;

    if (key != ARGP_KEY_ARG)
        return ended_parse(key, arg, state, jobs);
    if (jobs->since_ns >= 0 || jobs->until_ns >= 0)
        return cli_bad_usage(state, "either a month or --since and --until: '%.40s' is too much", arg);
    if (span_parse(arg, false, 0, false, &first_ns, NULL))
        return cli_bad_usage(state, "'%.40s' is not a month, such as 2026-11", arg);
    if (ended_parse(ENDED_KEY_SINCE, arg, state, jobs) || ended_parse(ENDED_KEY_UNTIL, arg, state, jobs))
        return ECANCELED;
    return 0;
}

const struct argp report_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[MONTH]",
    .doc = "Sum up a month (2026-11; the last one where none is said) by user and project: the jobs that ended in it."
           "\vFAILED are the jobs that ended neither completed nor cancelled. OOM counts runs that ended out of GPU "
           "memory. UNUSED are GPU hours of jobs that used no GPU memory at any reading. USED is how much of the GPU "
           "memory reserved for jobs they used at their peaks, weighted by GPU hours. Energy is modelled.",
};

/* ---- Sums ---- */

struct line {
    char *key; /* owned: user, a comma, project */
    char *user, *account;
    int64_t jobs, failed, oom, gpu_ns, unused_ns, mj, waited, wait_ns;
    double reserved, used; /* bytes times GPU time, of jobs of which both are known */
    UT_hash_handle hh;
};

static void line_free(struct line *line)
{
    free(line->key);
    free(line->user);
    free(line->account);
    free(line);
}

static void lines_release(struct line **lines)
{
    struct line *line, *next;

    HASH_ITER (hh, *lines, line, next) {
        HASH_DEL(*lines, line);
        line_free(line);
    }
}

static struct line *line_of(struct line **lines, const json_t *job)
{
    const char *user = answer_text(job, "user"), *account = answer_text(job, "account");
    CLEANUP(free_ptr) char *key = xasprintf("%s,%s", user ? user : "", account ? account : "");
    struct line *line;

    HASH_FIND_STR(*lines, key, line);
    if (line)
        return line;
    line = xcalloc(1, sizeof *line);
    line->key = xstrdup(key);
    line->user = xstrdup(user ? user : "");
    line->account = account ? xstrdup(account) : NULL;
    HASH_ADD_KEYPTR(hh, *lines, line->key, strlen(line->key), line);
    return line;
}

static bool is_failure(const json_t *job)
{
    const char *state = answer_text(job, "state");

    return state && strcmp(state, "COMPLETED") != 0 && strcmp(state, "CANCELLED") != 0 &&
           strcmp(state, "RETURNED") != 0 && strcmp(state, "EXPIRED") != 0;
}

static void add_job(struct line *line, const json_t *job)
{
    int64_t gpu_ns = answer_integer(job, "gpu_ns", 0), wait_ns = answer_integer(job, "wait_ns", -1);
    int64_t reserved = answer_integer(job, "last_reserved_bytes", -1), peak = answer_integer(job, "peak_bytes", 0);

    line->jobs++;
    line->failed += is_failure(job);
    line->oom += answer_integer(job, "oom_crashes", 0) + answer_integer(job, "handle_crashes", 0);
    line->gpu_ns += gpu_ns;
    line->unused_ns += peak > 0 ? 0 : gpu_ns;
    line->mj += answer_integer(job, "modelled_energy_mj", 0);
    line->waited += wait_ns >= 0;
    line->wait_ns += wait_ns >= 0 ? wait_ns : 0;
    if (reserved > 0 && peak > 0) {
        line->reserved += (double)reserved * (double)gpu_ns;
        line->used += (double)peak * (double)gpu_ns;
    }
}

static int add_all(struct cli *cli, const struct ended_options *jobs, struct line **lines, struct error *err)
{
    int64_t after = 0;
    bool more = true;

    while (more) {
        CLEANUP(json_release) json_t *reply = NULL;
        CLEANUP(strbuf_release) struct strbuf path = {0};
        char page[64];
        const json_t *list;
        json_t *job;
        size_t i;
        int rc;

        snprintf(page, sizeof page, after ? "limit=%d&after=%" PRId64 : "limit=%d", PAGE, after);
        strbuf_puts(&path, "/v1/history");
        ended_put_query(&path, jobs, page);
        if ((rc = cli_call(cli, "GET", path.text, NULL, &reply, err)))
            return rc;
        list = json_object_get(reply, "jobs");
        json_array_foreach (list, i, job)
            add_job(line_of(lines, job), job);
        after = answer_integer(json_array_get(list, json_array_size(list) - 1), "id", 0);
        more = answer_true(reply, "more") && after;
    }
    return 0;
}

static int by_use(const struct line *a, const struct line *b)
{
    return a->gpu_ns != b->gpu_ns ? (a->gpu_ns < b->gpu_ns) - (a->gpu_ns > b->gpu_ns) : strcmp(a->key, b->key);
}

/* ---- Text, CSV, JSON ---- */

static const struct table_column columns[] = {
    {"USER", false, 6, 0, false},     {"PROJECT", false, 6, 0, false}, {"JOBS", true, 0, 0, false},
    {"GPU HOURS", true, 0, 0, false}, {"ENERGY", true, 0, 1, false},   {"WAIT", true, 0, 4, false},
    {"FAILED", true, 0, 2, false},    {"OOM", true, 0, 0, false},      {"UNUSED", true, 0, 0, false},
    {"USED", true, 0, 0, false},
};

static void print_table(const struct line *lines)
{
    struct table *table = table_new(columns, array_size(columns));
    char text[ANSWER_ENERGY + ENDED_TEXT + UNITS_TEXT];

    for (const struct line *line = lines; line; line = line->hh.next) {
        CLEANUP(free_ptr) char *user = term_escape(line->user);
        CLEANUP(free_ptr) char *account = term_escape(line->account);
        table_cell(table, STYLE_NONE, "%s", user);
        table_cell(table, STYLE_NONE, "%s", account);
        table_cell(table, STYLE_NONE, "%" PRId64, line->jobs);
        table_cell(table, STYLE_NONE, "%s", ended_hours(line->gpu_ns, text));
        table_cell(table, STYLE_NONE, "%s", answer_energy(line->mj, text));
        table_cell(table, STYLE_NONE, "%s", line->waited ? format_duration(line->wait_ns / line->waited, text) : "-");
        table_cell(table, STYLE_NONE, "%" PRId64, line->failed);
        table_cell(table, STYLE_NONE, "%" PRId64, line->oom);
        table_cell(table, STYLE_NONE, "%s", ended_hours(line->unused_ns, text));
        if (line->reserved > 0)
            table_cell(table, STYLE_NONE, "%.0f%%", 100 * line->used / line->reserved);
        else
            table_cell(table, STYLE_NONE, "-");
    }
    table_print(table);
}

static void print_csv(const struct line *lines)
{
    puts("user,account,jobs,gpu_s,modelled_energy_j,wait_s,failed,oom,unused_gpu_s,used");
    for (const struct line *line = lines; line; line = line->hh.next) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        csv_put_text(&out, line->user);
        strbuf_puts(&out, ",");
        csv_put_text(&out, line->account);
        strbuf_printf(&out, ",%" PRId64 ",%.3f,%.3f,%.3f,%" PRId64 ",%" PRId64 ",%.3f,", line->jobs,
                      (double)line->gpu_ns / 1e9, (double)line->mj / 1000, (double)line->wait_ns / 1e9, line->failed,
                      line->oom, (double)line->unused_ns / 1e9);
        if (line->reserved > 0)
            strbuf_printf(&out, "%.3f", line->used / line->reserved);
        puts(out.text);
    }
}

static json_t *known(int64_t ns)
{
    return ns < 0 ? json_null() : json_integer(ns);
}

static void print_json(const struct ended_options *jobs, const struct line *lines)
{
    json_t *list = json_array(), *report;

    for (const struct line *line = lines; line; line = line->hh.next) {
        json_t *json =
            json_pack("{s:s, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "user", line->user, "account", line->account,
                      "jobs", (json_int_t)line->jobs, "gpu_ns", (json_int_t)line->gpu_ns, "modelled_energy_mj",
                      (json_int_t)line->mj, "wait_ns", (json_int_t)line->wait_ns, "failed", (json_int_t)line->failed,
                      "oom", (json_int_t)line->oom, "unused_gpu_ns", (json_int_t)line->unused_ns);
        json_object_set_new(json, "used_permille",
                            line->reserved > 0 ? json_integer((json_int_t)(1000 * line->used / line->reserved))
                                               : json_null());
        json_array_append_new(list, json);
    }
    report = json_pack("{s:o, s:o, s:o}", "since_ns", known(jobs->since_ns), "until_ns", known(jobs->until_ns), "lines",
                       list);
    cli_print_json(moment_twin(moment_twin(report, "since_ns"), "until_ns"));
    json_decref(report);
}

/* The last whole month; a virtual node's time has none, and all of it counts. */
static void choose_span(struct ended_options *jobs)
{
    int64_t now_ns = nodetime_shown_now_ns();
    time_t now = (time_t)(now_ns / NS_PER_SEC);
    struct tm local;
    char month[32];

    if (jobs->since_ns >= 0 || jobs->until_ns >= 0 || nodetime_scale() != 1 || !localtime_r(&now, &local))
        return;
    local.tm_mon--;
    local.tm_mday = 1;
    local.tm_isdst = -1;
    mktime(&local);
    strftime(month, sizeof month, "%Y-%m", &local);
    span_parse(month, false, now_ns, false, &jobs->since_ns, NULL);
    span_parse(month, true, now_ns, false, &jobs->until_ns, NULL);
}

int cmd_report(struct cli *cli, int argc, char **argv)
{
    CLEANUP(lines_release) struct line *lines = NULL;
    struct ended_options jobs;
    struct error err;
    int status;

    ended_init(&jobs);
    if (!cli_parse(cli, argc, argv, &jobs, &status))
        return status;
    choose_span(&jobs);
    if (add_all(cli, &jobs, &lines, &err))
        return cli_fail("%s", err.text);
    HASH_SORT(lines, by_use);
    if (jobs.json) {
        print_json(&jobs, lines);
    } else if (jobs.csv) {
        print_csv(lines);
    } else {
        CLEANUP(free_ptr) char *since = answer_time(jobs.since_ns);
        CLEANUP(free_ptr) char *until = answer_time(jobs.until_ns);
        printf("%s ended from %s to %s\n", lines ? "Jobs that" : "no job to report", since, until);
        if (lines)
            print_table(lines);
    }
    return CLI_OK;
}
