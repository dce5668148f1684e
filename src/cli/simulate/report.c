/* Figures of several runs of each policy: their mean and spread, as JSON and as tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/or_null.h"
#include "base/memory.h"
#include "base/stats/stats.h"
#include "base/units.h"
#include "cli/show/table.h"
#include "cli/simulate/simulate.h"

enum figure_kind { KIND_SECONDS, KIND_JOULES, KIND_COUNT, KIND_RATIO, KIND_SHARE };

static const struct figure {
    const char *member;
    const char *title;  /* NULL: in JSON alone */
    const char *column; /* in a comparison; NULL: not there */
    enum figure_kind kind;
    bool change; /* a comparison shows its change */
    int optional;
} figures[SIM_FIGURE_COUNT] = {
    [SIM_MAKESPAN] = {"makespan_s", "makespan", "makespan", KIND_SECONDS, true, 0},
    [SIM_WAIT] = {"wait_s", "wait time, mean", "wait time", KIND_SECONDS, true, 0},
    [SIM_RUN_TIME] = {"run_time_s", "run time, mean", "run time", KIND_SECONDS, false, 4},
    [SIM_JCT] = {"jct_s", "JCT, mean", "JCT", KIND_SECONDS, true, 0},
    [SIM_JCT_P95] = {"jct_p95_s", "JCT, p95", NULL, KIND_SECONDS, false, 0},
    [SIM_WAIT_P95] = {"wait_p95_s", "wait time, p95", NULL, KIND_SECONDS, false, 0},
    [SIM_ENERGY] = {"energy_j", "energy", "energy", KIND_JOULES, true, 2},
    [SIM_HELD] = {"gpu_held_s", NULL, NULL, KIND_SECONDS, false, 0},
    [SIM_OOM] = {"oom", "out-of-memory crashes", "OOM", KIND_COUNT, false, 0},
    [SIM_MOVED] = {"moved", "jobs moved off a GPU", NULL, KIND_COUNT, false, 0},
    [SIM_SHARING_MEAN] = {"sharing_slowdown_mean", "sharing slowdown, mean", NULL, KIND_RATIO, false, 0},
    [SIM_SHARING_P95] = {"sharing_slowdown_p95", "sharing slowdown, p95", "sharing p95", KIND_RATIO, false, 3},
    [SIM_SHARING_MAX] = {"sharing_slowdown_max", "sharing slowdown, worst job", "worst", KIND_RATIO, false, 6},
    [SIM_BOUNDED_MEAN] = {"bounded_slowdown_mean", "bounded slowdown, mean", NULL, KIND_RATIO, false, 0},
    [SIM_BOUNDED_P95] = {"bounded_slowdown_p95", "bounded slowdown, p95", "bounded p95", KIND_RATIO, false, 7},
    [SIM_BOUNDED_MAX] = {"bounded_slowdown_max", "bounded slowdown, worst job", "worst", KIND_RATIO, false, 8},
    [SIM_JAIN] = {"jain_index", "Jain's index of users", "Jain", KIND_RATIO, false, 9},
    [SIM_PREDICTED_MAX] = {"predicted_slowdown_max", "slowdown predicted at most", NULL, KIND_RATIO, false, 0},
    [SIM_ACTIVITY] = {"smact_mean", "SM activity, mean of a GPU", "SM act.", KIND_SHARE, false, 5},
    [SIM_REFUSED] = {"refused", "jobs refused", NULL, KIND_COUNT, false, 0},
    [SIM_GIVEN_UP] = {"given_up", "jobs given up, out of memory", NULL, KIND_COUNT, false, 0},
    [SIM_NEVER_ENDED] = {"never_ended", "jobs that never ended", NULL, KIND_COUNT, false, 0},
};

void simulate_outcome_init(struct simulate_outcome *outcome, const char *policy, size_t seeds)
{
    *outcome = (struct simulate_outcome){.policy = policy, .seeds = seeds};
    for (size_t i = 0; i < SIM_FIGURE_COUNT; i++)
        outcome->values[i] = xcalloc(seeds, sizeof *outcome->values[i]);
}

void simulate_outcome_add(struct simulate_outcome *outcome, size_t seed, const struct sim_result *result)
{
    const double values[SIM_FIGURE_COUNT] = {
        [SIM_MAKESPAN] = result->makespan_s,
        [SIM_WAIT] = result->wait.mean_s,
        [SIM_RUN_TIME] = result->execution.mean_s,
        [SIM_JCT] = result->completion.mean_s,
        [SIM_JCT_P95] = result->completion.p95_s,
        [SIM_WAIT_P95] = result->wait.p95_s,
        [SIM_ENERGY] = result->energy_j,
        [SIM_HELD] = result->held_s,
        [SIM_OOM] = (double)result->oom,
        [SIM_MOVED] = (double)result->moved,
        [SIM_SHARING_MEAN] = result->measures.sharing.mean,
        [SIM_SHARING_P95] = result->measures.sharing.p95,
        [SIM_SHARING_MAX] = result->measures.sharing.max,
        [SIM_BOUNDED_MEAN] = result->measures.bounded.mean,
        [SIM_BOUNDED_P95] = result->measures.bounded.p95,
        [SIM_BOUNDED_MAX] = result->measures.bounded.max,
        [SIM_JAIN] = result->measures.jain,
        [SIM_PREDICTED_MAX] = result->predicted_slowdown_max,
        [SIM_ACTIVITY] = result->activity_mean,
        [SIM_REFUSED] = (double)result->refused,
        [SIM_GIVEN_UP] = (double)result->given_up,
        [SIM_NEVER_ENDED] = (double)result->never_ended,
    };

    for (size_t i = 0; i < SIM_FIGURE_COUNT; i++)
        outcome->values[i][seed] = values[i];
    outcome->jobs = result->jobs;
    outcome->users = result->measures.users > outcome->users ? result->measures.users : outcome->users;
    outcome->incomplete |= result->completed < result->jobs;
    if (result->never_ended)
        memcpy(outcome->never_ended_why, result->never_ended_why, sizeof outcome->never_ended_why);
}

void simulate_outcome_release(struct simulate_outcome *outcome)
{
    for (size_t i = 0; i < SIM_FIGURE_COUNT; i++)
        free(outcome->values[i]);
    json_decref(outcome->timeline);
    *outcome = (struct simulate_outcome){0};
}

double simulate_mean(const struct simulate_outcome *outcome, enum simulate_figure figure)
{
    return stats_mean(outcome->values[figure], outcome->seeds);
}

double simulate_sd(const struct simulate_outcome *outcome, enum simulate_figure figure)
{
    double mean = simulate_mean(outcome, figure), squares = 0;

    for (size_t i = 0; i < outcome->seeds; i++)
        squares += (outcome->values[figure][i] - mean) * (outcome->values[figure][i] - mean);
    return outcome->seeds > 1 ? sqrt(squares / (double)(outcome->seeds - 1)) : squares;
}

json_t *simulate_to_json(const struct simulate_outcome *outcomes, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "policy", json_string(outcomes[i].policy));
        json_object_set_new(object, "share", json_string(outcomes[i].share));
        json_object_set_new(object, "jobs", json_integer((json_int_t)outcomes[i].jobs));
        json_object_set_new(object, "seeds", json_integer((json_int_t)outcomes[i].seeds));
        json_object_set_new(object, "users", json_integer((json_int_t)outcomes[i].users));
        json_object_set_new(object, "incomplete", json_boolean(outcomes[i].incomplete));
        for (enum simulate_figure f = 0; f < SIM_FIGURE_COUNT; f++)
            json_object_set_new(object, figures[f].member,
                                json_pack("{s:o, s:o}", "mean", real_or_null(simulate_mean(&outcomes[i], f)), "sd",
                                          real_or_null(simulate_sd(&outcomes[i], f))));
        json_object_set_new(object, "requests", simulate_requests_to_json(&outcomes[i].requests));
        if (outcomes[i].timeline)
            json_object_set(object, "timeline", outcomes[i].timeline);
        json_array_append_new(list, object);
    }
    return list;
}

static char *value_text(enum figure_kind kind, double value)
{
    char text[UNITS_TEXT];

    if (isnan(value))
        return xstrdup("-");
    switch (kind) {
    case KIND_SECONDS:
        return xstrdup(format_duration((int64_t)(value * 1e9), text));
    case KIND_JOULES:
        return value < 1e6 ? xasprintf("%.1f kJ", value / 1e3) : xasprintf("%.2f MJ", value / 1e6);
    case KIND_COUNT:
        return value == floor(value) ? xasprintf("%.0f", value) : xasprintf("%.1f", value);
    case KIND_RATIO:
        return xasprintf("%.2f", value);
    default:
        return xasprintf("%.1f%%", value * 100);
    }
}

/* Figures that a complete run does not have. */
static bool is_of_the_lost(enum simulate_figure figure)
{
    return figure >= SIM_REFUSED && figure <= SIM_NEVER_ENDED;
}

/* ---- One policy: a figure per line ---- */

static void format_one(const struct simulate_outcome *outcome, int width, bool colour, struct strbuf *out)
{
    const struct table_column columns[] = {{.title = outcome->policy, .minimum = 16},
                                           {.title = outcome->seeds > 1 ? "mean" : "", .right = true, .minimum = 8},
                                           {.title = "s.d.", .right = true, .optional = 1}};
    size_t column_count = outcome->seeds > 1 ? 3 : 2;
    struct table *table = table_new(columns, column_count);

    for (enum simulate_figure f = 0; f < SIM_FIGURE_COUNT; f++) {
        CLEANUP(free_ptr) char *mean = value_text(figures[f].kind, simulate_mean(outcome, f));
        CLEANUP(free_ptr) char *sd = value_text(figures[f].kind, simulate_sd(outcome, f));
        if (!figures[f].title)
            continue;
        if ((is_of_the_lost(f) || f == SIM_MOVED) && simulate_mean(outcome, f) == 0)
            continue;
        table_cell(table, STYLE_NONE, "%s", figures[f].title);
        table_cell(table, is_of_the_lost(f) ? STYLE_RED : STYLE_NONE, "%s", mean);
        if (column_count > 2)
            table_cell(table, STYLE_NONE, "%s", sd);
    }
    table_cell(table, STYLE_NONE, "jobs");
    table_cell(table, STYLE_NONE, "%zu", outcome->jobs);
    if (column_count > 2)
        table_cell(table, STYLE_NONE, "%s", "");
    table_format(table, width, colour, out);
    table_free(table);
}

/* ---- Several: a policy per line ---- */

/* A figure that is better than the first's, where less is better. */
static void change_cell(struct table *table, bool comparable, double first, double other)
{
    if (!comparable || isnan(first) || isnan(other) || first <= 0)
        table_cell(table, STYLE_NONE, "-");
    else if (first == other)
        table_cell(table, STYLE_NONE, "=");
    else
        table_cell(table, other < first ? STYLE_GREEN : STYLE_NONE, "%+.1f%%", (other / first - 1) * 100);
}

static void format_rows(const struct simulate_outcome *outcomes, size_t count, struct table *table)
{
    for (size_t i = 0; i < count; i++) {
        bool comparable = !outcomes[0].incomplete && !outcomes[i].incomplete;
        table_cell(table, STYLE_NONE, "%s", outcomes[i].policy);
        for (enum simulate_figure f = 0; f < SIM_FIGURE_COUNT; f++) {
            CLEANUP(free_ptr) char *mean = value_text(figures[f].kind, simulate_mean(&outcomes[i], f));
            if (!figures[f].column)
                continue;
            table_cell(table, STYLE_NONE, "%s", mean);
            if (figures[f].change && i == 0)
                table_cell(table, STYLE_NONE, "%s", "");
            else if (figures[f].change)
                change_cell(table, comparable, simulate_mean(&outcomes[0], f), simulate_mean(&outcomes[i], f));
        }
    }
}

static void format_several(const struct simulate_outcome *outcomes, size_t count, int width, bool colour,
                           struct strbuf *out)
{
    struct table_column columns[2 * SIM_FIGURE_COUNT + 1] = {{.title = "policy", .minimum = 8}};
    size_t column_count = 1;
    struct table *table;

    for (enum simulate_figure f = 0; f < SIM_FIGURE_COUNT; f++) {
        if (!figures[f].column)
            continue;
        columns[column_count++] =
            (struct table_column){.title = figures[f].column, .right = true, .optional = figures[f].optional};
        if (figures[f].change)
            columns[column_count++] =
                (struct table_column){.title = "change", .right = true, .optional = figures[f].optional};
    }
    table = table_new(columns, column_count);
    format_rows(outcomes, count, table);
    table_format(table, width, colour, out);
    table_free(table);
}

/* "carma: incomplete, not comparable: of 60 jobs 60 refused" */
static void format_incomplete(const struct simulate_outcome *outcome, struct strbuf *out)
{
    const char *before = "";

    if (!outcome->incomplete)
        return;
    strbuf_printf(out, "%s: incomplete, not comparable: of %zu jobs ", outcome->policy, outcome->jobs);
    for (enum simulate_figure f = SIM_REFUSED; f <= SIM_NEVER_ENDED; f++) {
        static const char *const words[] = {"refused", "given up, out of memory", "never ended"};
        CLEANUP(free_ptr) char *mean = value_text(KIND_COUNT, simulate_mean(outcome, f));
        if (simulate_mean(outcome, f) == 0)
            continue;
        strbuf_printf(out, "%s%s %s", before, mean, words[f - SIM_REFUSED]);
        before = "; ";
    }
    if (*outcome->never_ended_why)
        strbuf_printf(out, " (one: %s)", outcome->never_ended_why);
    strbuf_puts(out, "\n");
}

/* A line for each source of requests, after the policies that have it. */
static void format_requests(const struct simulate_outcome *outcomes, size_t count, struct strbuf *out)
{
    CLEANUP(free_ptr) struct strbuf *lines = xcalloc(count, sizeof *lines);

    for (size_t i = 0; i < count; i++)
        simulate_requests_format(&outcomes[i].requests, &lines[i]);
    for (size_t i = 0; i < count; i++) {
        if (!lines[i].text)
            continue;
        strbuf_puts(out, outcomes[i].policy);
        for (size_t k = i + 1; k < count; k++)
            if (lines[k].text && strcmp(lines[k].text, lines[i].text) == 0) {
                strbuf_printf(out, ", %s", outcomes[k].policy);
                strbuf_release(&lines[k]);
            }
        strbuf_printf(out, ": %s", lines[i].text);
        strbuf_release(&lines[i]);
    }
}

void simulate_format(const struct simulate_outcome *outcomes, size_t count, int width, bool colour, struct strbuf *out)
{
    if (count == 1)
        format_one(outcomes, width, colour, out);
    else
        format_several(outcomes, count, width, colour, out);
    for (size_t i = 0; i < count; i++)
        format_incomplete(&outcomes[i], out);
    format_requests(outcomes, count, out);
}
