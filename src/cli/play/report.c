#include "cli/play/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/or_null.h"
#include "base/file.h"
#include "base/stats/measures.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/stats/stats.h"
#include "base/units.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

#define REPORT_MAX_BYTES ((size_t)4 << 20)

enum figure_kind { FIGURE_SECONDS, FIGURE_JOULES, FIGURE_BYTES, FIGURE_RATIO, FIGURE_FACTOR, FIGURE_COUNT };

/* The content of a report and of its table, in this order. */
static const struct figure {
    const char *member;
    const char *title;
    enum figure_kind kind;
} figures[] = {
    {"makespan_s", "makespan", FIGURE_SECONDS},
    {"wait_mean_s", "wait time, mean", FIGURE_SECONDS},
    {"wait_p95_s", "wait time, p95", FIGURE_SECONDS},
    {"run_time_mean_s", "run time, mean", FIGURE_SECONDS},
    {"run_time_p95_s", "run time, p95", FIGURE_SECONDS},
    {"jct_mean_s", "JCT, mean", FIGURE_SECONDS},
    {"jct_p95_s", "JCT, p95", FIGURE_SECONDS},
    {"sharing_slowdown_mean", "sharing slowdown, mean", FIGURE_FACTOR},
    {"sharing_slowdown_p95", "sharing slowdown, p95", FIGURE_FACTOR},
    {"sharing_slowdown_max", "sharing slowdown, worst job", FIGURE_FACTOR},
    {"bounded_slowdown_mean", "bounded slowdown, mean", FIGURE_FACTOR},
    {"bounded_slowdown_p95", "bounded slowdown, p95", FIGURE_FACTOR},
    {"bounded_slowdown_max", "bounded slowdown, worst job", FIGURE_FACTOR},
    {"jain_index", "Jain's index of users", FIGURE_FACTOR},
    {"oom", "out-of-memory crashes", FIGURE_COUNT},
    {"energy_j", "energy", FIGURE_JOULES},
    {"memory_mean_bytes", "memory in use, mean of a GPU", FIGURE_BYTES},
    {"sm_activity_mean", "SM activity, mean of a GPU", FIGURE_RATIO},
    {"jobs", "jobs", FIGURE_COUNT},
    {"failed", "... that did not complete", FIGURE_COUNT},
};

static bool completed(const json_t *job)
{
    const char *state = answer_text(job, "state");

    return state && strcmp(state, "COMPLETED") == 0;
}

static void set_times(json_t *report, const char *name, double *seconds, size_t count)
{
    char member[64];

    snprintf(member, sizeof member, "%s_mean_s", name);
    json_object_set_new(report, member, count ? json_real(stats_mean(seconds, count)) : json_null());
    snprintf(member, sizeof member, "%s_p95_s", name);
    json_object_set_new(report, member, count ? json_real(stats_percentile(seconds, count, 95)) : json_null());
}

static void set_slowdown(json_t *report, const char *name, const struct measures_slowdown *slowdown)
{
    const struct {
        const char *statistic;
        double value;
    } members[] = {{"mean", slowdown->mean}, {"p95", slowdown->p95}, {"max", slowdown->max}};

    for (size_t i = 0; i < array_size(members); i++) {
        CLEANUP(free_ptr) char *member = xasprintf("%s_slowdown_%s", name, members[i].statistic);
        json_object_set_new(report, member, real_or_null(members[i].value));
    }
}

static void set_measures(json_t *report, struct measured_job *completed, size_t count)
{
    struct measures measures;

    measures_of(completed, count, &measures);
    set_slowdown(report, "sharing", &measures.sharing);
    set_slowdown(report, "bounded", &measures.bounded);
    json_object_set_new(report, "jain_index", real_or_null(measures.jain));
    json_object_set_new(report, "users", json_integer((json_int_t)measures.users));
}

json_t *report_compute(const struct report_job *jobs, size_t count, const struct usage *usage)
{
    CLEANUP(free_ptr) struct measured_job *measured = xcalloc(count + 1, sizeof *measured);
    CLEANUP(free_ptr) double *waiting = xcalloc(count + 1, sizeof *waiting);
    CLEANUP(free_ptr) double *run_time = xcalloc(count + 1, sizeof *run_time);
    CLEANUP(free_ptr) double *jct = xcalloc(count + 1, sizeof *jct);
    int64_t first_submitted = INT64_MAX, last_ended = INT64_MIN, oom = 0;
    size_t started = 0, done = 0;
    json_t *report = json_object();

    for (size_t i = 0; i < count; i++) {
        const json_t *job = jobs[i].job;
        int64_t submitted_ns = answer_integer(job, "submitted_ns", 0);
        int64_t first_ns = answer_integer(job, "first_started_ns", 0);
        int64_t launched_ns = answer_integer(job, "started_ns", 0);
        int64_t ended_ns = answer_integer(job, "ended_ns", 0);
        first_submitted = submitted_ns < first_submitted ? submitted_ns : first_submitted;
        last_ended = ended_ns > last_ended ? ended_ns : last_ended;
        oom += answer_integer(job, "crashes", 0);
        if (first_ns <= 0 || launched_ns <= 0)
            continue;
        waiting[started] = (double)(first_ns - submitted_ns) / 1e9;
        run_time[started] = (double)(ended_ns - launched_ns) / 1e9;
        jct[started] = (double)(ended_ns - submitted_ns) / 1e9;
        if (completed(job))
            measured[done++] = (struct measured_job){.uid = (uint32_t)answer_integer(job, "uid", 0),
                                                     .run_s = run_time[started],
                                                     .jct_s = jct[started],
                                                     .alone_s = jobs[i].alone_s};
        started++;
    }
    json_object_set_new(report, "jobs", json_integer((json_int_t)count));
    json_object_set_new(report, "failed", json_integer((json_int_t)(count - done)));
    json_object_set_new(report, "incomplete", json_boolean(done < count));
    json_object_set_new(report, "makespan_s",
                        count ? json_real((double)(last_ended - first_submitted) / 1e9) : json_null());
    set_times(report, "wait", waiting, started);
    set_times(report, "run_time", run_time, started);
    set_times(report, "jct", jct, started);
    set_measures(report, measured, done);
    json_object_set_new(report, "oom", json_integer(oom));
    json_object_set_new(report, "energy_j", real_or_null(usage_energy_joules(usage)));
    json_object_set_new(report, "memory_mean_bytes", real_or_null(usage_memory_mean_bytes(usage)));
    json_object_set_new(report, "sm_activity_mean", real_or_null(usage_sm_activity_mean(usage)));
    return report;
}

bool report_is_incomplete(const json_t *report)
{
    return answer_integer(report, "failed", 0) > 0;
}

int report_read(const char *path, json_t **report, struct error *err)
{
    static const struct json_bounds bounds = {.values = 4096, .depth = 8, .bytes = 1 << 20};
    CLEANUP(free_ptr) char *text = NULL;
    struct error problem;
    size_t length;
    int rc = file_read(path, REPORT_MAX_BYTES, &text, &length, err);

    if (rc)
        return rc;
    if (json_read(text, length, 0, &bounds, report, &problem))
        return error_set(err, EINVAL, "%s: %s: give a file that carma play --json has written", path, problem.text);
    for (size_t i = 0; i < array_size(figures); i++) {
        const json_t *value = json_object_get(*report, figures[i].member);
        if (json_is_number(value) || json_is_null(value))
            continue;
        json_decref(*report);
        *report = NULL;
        return error_set(err, EINVAL, "%s: no '%s' in it: give a file that carma play --json has written", path,
                         figures[i].member);
    }
    return 0;
}

static char *figure_text(const struct figure *figure, const json_t *report)
{
    double value = answer_number(report, figure->member, NAN);
    char text[UNITS_TEXT];

    if (isnan(value))
        return xstrdup("-");
    switch (figure->kind) {
    case FIGURE_SECONDS:
        return xstrdup(format_duration((int64_t)(value * 1e9), text));
    case FIGURE_JOULES:
        return value < 1e6 ? xasprintf("%.1f kJ", value / 1e3) : xasprintf("%.2f MJ", value / 1e6);
    case FIGURE_BYTES:
        return xstrdup(format_bytes((int64_t)value, text));
    case FIGURE_RATIO:
        return xasprintf("%.1f%%", value * 100);
    case FIGURE_FACTOR:
        return xasprintf("%.2f", value);
    default:
        return xasprintf("%.0f", value);
    }
}

static char *change_text(const struct figure *figure, const json_t *first, const json_t *other)
{
    double from = answer_number(first, figure->member, NAN), to = answer_number(other, figure->member, NAN);

    if (isnan(from) || isnan(to) || report_is_incomplete(first) || report_is_incomplete(other))
        return xstrdup("-");
    if (from == to)
        return xstrdup("=");
    return from > 0 ? xasprintf("%+.1f%%", (to - from) / from * 100) : xasprintf("%+.0f", to - from);
}

/* Less time and less energy are better; of memory and activity one cannot say. */
static enum term_style change_style(const struct figure *figure, const char *change)
{
    bool fell = change[0] == '-' && change[1];

    return fell && (figure->kind == FIGURE_SECONDS || figure->kind == FIGURE_JOULES) ? STYLE_GREEN : STYLE_NONE;
}

/* "magm, mps": how the daemon decided. */
static char *column_title(const json_t *report)
{
    CLEANUP(free_ptr) char *policy = answer_safe_text(report, "policy");
    CLEANUP(free_ptr) char *share = answer_safe_text(report, "share");

    return xasprintf("%s, %s", policy, share);
}

/* "thesis_90.csv on 4x A100 (virtual node, time scale 360)" */
static void format_heading(const json_t *report, struct strbuf *out)
{
    CLEANUP(free_ptr) char *trace = answer_safe_text(report, "trace");
    const json_t *node = json_object_get(report, "node");
    CLEANUP(free_ptr) char *gpu = term_escape(json_string_value(json_array_get(node, 0)));
    double scale = answer_number(report, "time_scale", 1);

    strbuf_printf(out, "%s on %zux %s", trace, json_array_size(node), gpu);
    if (scale > 1)
        strbuf_printf(out, " (virtual node, time scale %g)", scale);
    strbuf_puts(out, "\n");
}

static void add_figure(struct table *table, const struct figure *figure, json_t *const *reports, size_t count)
{
    table_cell(table, STYLE_NONE, "%s", figure->title);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(free_ptr) char *value = figure_text(figure, reports[i]);
        CLEANUP(free_ptr) char *change = i ? change_text(figure, reports[0], reports[i]) : NULL;
        table_cell(table, STYLE_NONE, "%s", value);
        if (i)
            table_cell(table, change_style(figure, change), "%s", change);
    }
}

void report_format(json_t *const *reports, size_t count, int width, bool colour, struct strbuf *out)
{
    size_t column_count = 2 * count;
    CLEANUP(free_ptr) struct table_column *columns = xcalloc(column_count, sizeof *columns);
    CLEANUP(free_ptr) char **titles = xcalloc(count, sizeof *titles);
    struct table *table;

    columns[0] = (struct table_column){.title = "", .minimum = 16};
    for (size_t i = 0; i < count; i++) {
        titles[i] = column_title(reports[i]);
        columns[i ? 2 * i : 1] = (struct table_column){.title = titles[i], .right = true, .minimum = 8};
        if (i)
            columns[2 * i + 1] = (struct table_column){.title = "change", .right = true};
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !json_equal(json_object_get(reports[i], "node"), json_object_get(reports[0], "node")) ||
            !json_equal(json_object_get(reports[i], "trace"), json_object_get(reports[0], "trace")))
            format_heading(reports[i], out);
    }
    strbuf_puts(out, "\n");
    table = table_new(columns, column_count);
    for (size_t i = 0; i < array_size(figures); i++)
        add_figure(table, &figures[i], reports, count);
    table_format(table, width, colour, out);
    table_free(table);
    for (size_t i = 0; i < count; i++) {
        if (report_is_incomplete(reports[i]))
            strbuf_printf(out, "%s: incomplete, not comparable: %.0f of %.0f jobs did not complete\n", titles[i],
                          answer_number(reports[i], "failed", 0), answer_number(reports[i], "jobs", 0));
        free(titles[i]);
    }
}
