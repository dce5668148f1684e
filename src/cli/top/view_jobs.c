/* The panes of running and of waiting jobs of `carma top`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/show/answer.h"
#include "cli/top/answer.h"

#define ID_MOST 16

enum { ID, NODE, NAME, USER, GPUS, USED, CLAIM, SOURCE, SM, SLOWDOWN, DONE, TIME, ENERGY, REASON, CELLS };

struct pane_columns {
    const char *empty; /* the text where there is no job */
    size_t count;
    struct {
        int cell;
        struct top_column column;
        enum top_sort sort; /* by which it is sorted; TOP_SORTS: by none */
    } items[CELLS];
};

static const struct pane_columns running = {
    "no job runs",
    13,
    {
        {ID, {"RUNNING", true, 7, 7, 0}, TOP_BY_ORDER},
        {NODE, {"NODE", false, 0, 0, 0}, TOP_SORTS},
        {NAME, {"NAME", false, 8, 40, 0}, TOP_BY_NAME},
        {USER, {"USER", false, 6, 8, 4}, TOP_BY_USER},
        {GPUS, {"GPUS", false, 4, 11, 0}, TOP_SORTS},
        {USED, {"USED", true, 6, 6, 0}, TOP_BY_USED},
        {CLAIM, {"RSVD", true, 6, 6, 0}, TOP_BY_RESERVED},
        {SOURCE, {"BY", false, 11, 11, 7}, TOP_SORTS},
        {SM, {"SM", true, 4, 4, 1}, TOP_BY_SM},
        {SLOWDOWN, {"SLOW", true, 4, 4, 3}, TOP_BY_SLOWDOWN},
        {DONE, {"DONE", true, 4, 4, 8}, TOP_BY_DONE},
        {TIME, {"TIME", true, 8, 10, 2}, TOP_BY_TIME},
        {ENERGY, {"ENERGY", true, 8, 8, 6}, TOP_BY_ENERGY},
    },
};

static const struct pane_columns waiting = {
    "no job waits",
    8,
    {
        {ID, {"QUEUE", true, 6, 7, 0}, TOP_BY_ORDER},
        {NODE, {"NODE", false, 0, 0, 0}, TOP_SORTS},
        {NAME, {"NAME", false, 10, 24, 0}, TOP_BY_NAME},
        {USER, {"USER", false, 6, 10, 3}, TOP_BY_USER},
        {GPUS, {"GPUS", true, 4, 4, 4}, TOP_SORTS},
        {CLAIM, {"RSVD", true, 6, 6, 2}, TOP_BY_RESERVED},
        {TIME, {"WAITS", true, 8, 10, 5}, TOP_BY_TIME},
        {REASON, {"WHY NOT YET", false, 16, 70, 0}, TOP_SORTS},
    },
};

static void put_activity(struct top_line *line, const struct top_job *job, size_t width)
{
    char text[32] = "-";

    if (job->sm_permille >= 0)
        snprintf(text, sizeof text, "%s%" PRId64 "%%", job->sm_coarse ? "~" : "", (job->sm_permille + 5) / 10);
    top_put(line, STYLE_NONE, width, true, text);
}

static void put_slowdown(struct top_line *line, const struct top_job *job, size_t width)
{
    int64_t tenths = (job->slowdown_permille + 50) / 100;
    char text[48] = "-";

    if (job->slowdown_permille >= 0)
        snprintf(text, sizeof text, "%" PRId64 ".%" PRId64 "x", tenths / 10, tenths % 10);
    top_put(line, job->slowdown_permille >= 2000 ? STYLE_YELLOW : STYLE_NONE, width, true, text);
}

static void put_done(struct top_line *line, const struct top_job *job, size_t width)
{
    char text[32] = "-";

    if (job->done_permille >= 0)
        snprintf(text, sizeof text, "%" PRId64 "%%", job->done_permille / 10);
    top_put(line, STYLE_NONE, width, true, text);
}

/* The GPUs that it is on, or how many it wants. */
static void put_gpus(struct top_line *line, const struct top_job *job, bool waits, size_t width)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    json_t *placement;
    size_t i;

    if (waits && !json_object_get(job->json, "gpus")) /* at Slurm */
        strbuf_puts(&out, "-");
    else if (waits)
        strbuf_printf(&out, "%" PRId64 "%s", answer_integer(job->json, "gpus", 0),
                      answer_true(job->json, "exclusive") ? "x" : "");
    else
        strbuf_puts(&out, "");
    json_array_foreach (waits ? NULL : json_object_get(job->json, "placements"), i, placement)
        strbuf_printf(&out, "%s%" PRId64, i ? "," : "", answer_integer(placement, "index", -1));
    top_put(line, STYLE_NONE, width, waits, out.text);
}

static void put_id(struct top_line *line, const struct top_job *job, size_t width)
{
    int64_t shown = answer_integer(job->json, "shown_id", -1); /* at Slurm */
    CLEANUP(free_ptr) char *text = shown >= 0 ? xasprintf("%" PRId64, shown) : answer_job_id(job->json);

    top_put(line, answer_state_style(job->json), width, true, text);
}

static void put_time(struct top_line *line, const struct top_model *model, const struct top_job *job, bool waits,
                     size_t width)
{
    int64_t now_ns = answer_integer(waits ? model->picture.waiting : model->picture.running, "now_ns", job->time_ns);
    char text[UNITS_TEXT];

    top_put(line, STYLE_NONE, width, true, format_duration(now_ns > job->time_ns ? now_ns - job->time_ns : 0, text));
}

/* Why it does not run yet, or that it has not used its GPUs. */
static void put_reason(struct top_line *line, const struct top_job *job, size_t width)
{
    CLEANUP(free_ptr) char *why = answer_job_where(job->json);

    top_put(line, answer_true(job->json, "retry") ? STYLE_YELLOW : STYLE_NONE, width, false, why);
}

static void put_bytes(struct top_line *line, enum term_style style, int64_t bytes, size_t width)
{
    char text[UNITS_TEXT];

    top_put(line, style, width, true, top_short_bytes(bytes, text));
}

static void put_text(struct top_line *line, const json_t *job, const char *member, size_t width)
{
    const char *text = answer_text(job, member);

    top_put(line, STYLE_NONE, width, false, text ? text : "-");
}

static void put_cell(struct top_line *line, const struct top_model *model, const struct top_job *job, int cell,
                     bool waits, size_t width)
{
    char text[ANSWER_ENERGY];

    switch (cell) {
    case ID:
        put_id(line, job, width);
        break;
    case NODE:
        put_text(line, job->json, "node", width);
        break;
    case NAME:
        put_text(line, job->json, "name", width);
        break;
    case USER:
        put_text(line, job->json, "user", width);
        break;
    case GPUS:
        put_gpus(line, job, waits, width);
        break;
    case USED:
        put_bytes(line, STYLE_NONE, job->used_bytes, width);
        break;
    case CLAIM:
        put_bytes(line, answer_integer(job->json, "over_reservation_bytes", 0) > 0 ? STYLE_RED : STYLE_NONE,
                  job->reserved_bytes, width);
        break;
    case SOURCE:
        top_put(line, STYLE_NONE, width, false,
                job->reserved_bytes < 0 ? "-" : answer_memory_source(job->json, "reservation_source"));
        break;
    case SM:
        put_activity(line, job, width);
        break;
    case SLOWDOWN:
        put_slowdown(line, job, width);
        break;
    case DONE:
        put_done(line, job, width);
        break;
    case TIME:
        put_time(line, model, job, waits, width);
        break;
    case ENERGY:
        top_put(line, STYLE_NONE, width, true, job->energy_mj < 0 ? "-" : answer_energy(job->energy_mj, text));
        break;
    default:
        put_reason(line, job, width);
        break;
    }
}

/* Where the list is empty, or shows only a part. */
static const char *nothing_text(const struct top_model *model, const struct pane_columns *pane)
{
    return *model->filter || model->mine ? "none of them (Esc: show all again)" : pane->empty;
}

/* The ids of arrays' jobs are longer than others: of the rows in sight. */
static size_t id_width(const struct top_model *model, enum top_pane which)
{
    size_t first = model->cursors[which].offset, end = first + model->page[which], most = 0;

    for (size_t i = first; i < end && i < model->job_count[which]; i++) {
        CLEANUP(free_ptr) char *id = answer_job_id(model->jobs[which][i].json);
        most = strlen(id) > most ? strlen(id) : most;
    }
    return most;
}

static void fit(const struct top_model *model, enum top_pane which, const struct pane_columns *pane, size_t width,
                struct top_column *columns, size_t *widths)
{
    size_t ids = id_width(model, which);

    for (size_t i = 0; i < pane->count; i++) {
        columns[i] = pane->items[i].column;
        if (pane->items[i].cell == ID && ids > columns[i].least)
            columns[i].least = columns[i].most = ids < ID_MOST ? ids : ID_MOST;
        if (model->cluster && pane->items[i].cell == NODE)
            columns[i].least = TOP_NODE_LEAST, columns[i].most = TOP_NODE_MOST;
    }
    top_fit(columns, pane->count, width, widths);
}

void top_view_jobs(const struct top_model *model, enum top_pane which, struct top_screen *screen, size_t rows)
{
    const struct pane_columns *pane = which == TOP_QUEUE ? &waiting : &running;
    const struct top_cursor *cursor = &model->cursors[which];
    struct top_column columns[array_size(pane->items)];
    size_t widths[array_size(pane->items)], sorted = pane->count;
    bool focused = model->focus == which;
    struct top_line *line;

    if (!rows)
        return;
    fit(model, which, pane, screen->width, columns, widths);
    for (size_t i = 0; i < pane->count; i++)
        if (pane->items[i].sort == model->sort[which])
            sorted = i;
    line = top_screen_line(screen, focused ? TOP_TITLE_FOCUSED : TOP_TITLE);
    top_view_titles(line, columns, widths, pane->count, sorted);
    for (size_t row = 0; row + 1 < rows; row++) {
        size_t at = cursor->offset + row;
        bool there = at < model->job_count[which];
        line = top_screen_line(screen, there && focused && at == cursor->selected ? TOP_SELECTED : TOP_PLAIN);
        for (size_t i = 0; there && i < pane->count; i++) {
            if (!widths[i])
                continue;
            if (i)
                top_put(line, STYLE_NONE, 1, false, "");
            put_cell(line, model, &model->jobs[which][at], pane->items[i].cell, which == TOP_QUEUE, widths[i]);
        }
        if (!there && at == 0)
            top_put_text(line, STYLE_DIM, screen->width, nothing_text(model, pane));
    }
}
