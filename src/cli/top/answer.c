#include "cli/top/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/show/answer.h"
#include "cli/top/problems.h"

#define GPUS_BESIDE_TEXT 20 /* lines of a screen from which on the GPUs stay in sight above a text */

char *top_short_bytes(int64_t bytes, char text[static 32])
{
    char *unit;

    if (bytes < 0)
        return strcpy(text, "-");
    unit = strchr(format_bytes(bytes, text), ' ');
    if (unit && unit[1] == 'B')
        strcpy(unit, "B");
    else if (unit) {
        *unit = unit[1];
        unit[1] = '\0';
    }
    return text;
}

void top_view_titles(struct top_line *line, const struct top_column *columns, const size_t *widths, size_t count,
                     size_t sorted)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(free_ptr) char *title = xasprintf("%s%s", columns[i].title, i == sorted ? "*" : "");
        if (!widths[i])
            continue;
        if (i)
            top_put(line, STYLE_NONE, 1, false, "");
        top_put(line, STYLE_BOLD, widths[i], columns[i].right, strlen(title) <= widths[i] ? title : columns[i].title);
    }
}

/* ---- The lines above the panes ---- */

/* A part of a header line, where it fits whole: the first parts are wanted most. */
static void put_part(struct top_line *line, const struct top_screen *screen, enum term_style style, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

static void put_part(struct top_line *line, const struct top_screen *screen, enum term_style style, const char *format,
                     ...)
{
    CLEANUP(free_ptr) char *text = NULL;
    va_list args;
    size_t gap = line->width ? 2 : 0;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    if (line->width + gap + term_text_width(text) > screen->width)
        return;
    top_put(line, STYLE_NONE, gap, false, "");
    top_put_text(line, style, screen->width - line->width, text);
}

static int64_t count_of(const json_t *status, const char *const *states)
{
    int64_t sum = 0;

    for (; *states; states++)
        sum += answer_integer(json_object_get(status, "counts"), *states, 0);
    return sum;
}

/* A scaled node's clock shows no time of day. */
static char *node_time(const json_t *status)
{
    double scale = answer_number(status, "time_scale", 1);
    int64_t now_ns = answer_integer(status, "now_ns", 0);
    char text[UNITS_TEXT];

    if (scale == 1)
        return answer_time(now_ns);
    return xasprintf("node time %s (x%g)", format_duration(now_ns, text), scale);
}

static void put_nodes(struct top_line *line, const struct top_screen *screen, const json_t *status)
{
    int64_t nodes = answer_integer(status, "nodes", 0), silent = answer_integer(status, "nodes_silent", 0);

    put_part(line, screen, STYLE_NONE, "%" PRId64 " node%s", nodes, nodes == 1 ? "" : "s");
    if (silent)
        put_part(line, screen, STYLE_RED, "%" PRId64 " SILENT", silent);
}

static void put_jobs_line(const struct top_model *model, struct top_screen *screen)
{
    static const char *const running[] = {"PLACED", "RUNNING", "SUSPENDED", "STOPPING", "REQUEUING", NULL};
    static const char *const waiting[] = {"QUEUED", "CRASHED", NULL};
    static const char *const held[] = {"HELD", NULL};
    const json_t *status = model->picture.status;
    const char *policy = answer_text(status, "policy");
    struct top_line *line = top_screen_line(screen, TOP_PLAIN);
    CLEANUP(free_ptr) char *clock = node_time(status);
    int64_t on_hold = count_of(status, held);

    put_part(line, screen, STYLE_BOLD, "carma");
    put_part(line, screen, STYLE_GREEN, "%" PRId64 " running", count_of(status, running));
    put_part(line, screen, STYLE_NONE, "%" PRId64 " waiting", count_of(status, waiting));
    if (*model->filter)
        put_part(line, screen, STYLE_YELLOW, "/%s", model->filter);
    if (model->mine)
        put_part(line, screen, STYLE_YELLOW, "only mine");
    if (on_hold)
        put_part(line, screen, STYLE_DIM, "%" PRId64 " held", on_hold);
    if (model->cluster)
        put_nodes(line, screen, status);
    else
        put_part(line, screen, STYLE_NONE, "policy %s", policy ? policy : "-");
    put_part(line, screen, STYLE_NONE, "%s", clock);
}

struct totals {
    int64_t gpus, lost, drained, used_bytes, total_bytes, power_mw, energy_mj; /* these two -1: nowhere known */
};

static void add_known(int64_t *sum, int64_t value)
{
    if (value >= 0 && __builtin_add_overflow(*sum < 0 ? 0 : *sum, value, sum))
        *sum = INT64_MAX; /* a hostile node's */
}

/* Of a GPU in MIG mode its instances have the jobs and the memory, and itself power and energy. */
static struct totals totals_of(const struct top_model *model)
{
    struct totals totals = {.power_mw = -1, .energy_mj = -1};

    for (size_t i = 0; i < model->gpu_count; i++) {
        const json_t *gpu = model->gpus[i].json;
        if (answer_integer(gpu, "index", -1) >= 0) {
            totals.gpus++;
            totals.lost += answer_true(gpu, "lost");
            totals.drained += answer_is_drained(gpu);
            add_known(&totals.used_bytes, answer_integer(gpu, "used_bytes", -1));
            add_known(&totals.total_bytes, answer_integer(gpu, "total_bytes", -1));
        }
        if (!model->gpus[i].instance) {
            add_known(&totals.power_mw, answer_integer(gpu, "power_mw", -1));
            add_known(&totals.energy_mj, answer_integer(gpu, "energy_mj", -1));
        }
    }
    return totals;
}

/* What sharing has saved, where that is known. */
static void put_saved(struct top_line *line, const struct top_screen *screen, const json_t *saved)
{
    int64_t alone_ns = answer_integer(saved, "gpu_alone_ns", -1), shared_ns = answer_integer(saved, "gpu_ns", -1);

    if (alone_ns >= 0 && shared_ns >= 0)
        put_part(line, screen, STYLE_DIM, "sharing saves %.1f of %.1f GPU h (simulated)",
                 (double)(alone_ns - shared_ns) / 3.6e12, (double)alone_ns / 3.6e12);
}

static void put_gpus_line(const struct top_model *model, struct top_screen *screen)
{
    struct top_line *line = top_screen_line(screen, TOP_PLAIN);
    struct totals totals = totals_of(model);
    char used[UNITS_TEXT], total[UNITS_TEXT], energy[ANSWER_ENERGY];

    put_part(line, screen, STYLE_NONE, "%" PRId64 " GPU%s", totals.gpus, totals.gpus == 1 ? "" : "s");
    if (totals.lost)
        put_part(line, screen, STYLE_RED, "%" PRId64 " LOST", totals.lost);
    if (totals.drained)
        put_part(line, screen, STYLE_YELLOW, "%" PRId64 " drained", totals.drained);
    put_part(line, screen, STYLE_NONE, "%s of %s used", top_short_bytes(totals.used_bytes, used),
             top_short_bytes(totals.total_bytes, total));
    if (totals.power_mw >= 0)
        put_part(line, screen, STYLE_NONE, "%" PRId64 " W", (totals.power_mw + 500) / 1000);
    if (totals.energy_mj >= 0)
        put_part(line, screen, STYLE_NONE, "%s so far", answer_energy(totals.energy_mj, energy));
    put_saved(line, screen, json_object_get(model->picture.status, "saved"));
    if (answer_text(model->picture.gpus, "problem"))
        put_part(line, screen, STYLE_RED, "%s", answer_text(model->picture.gpus, "problem"));
    if (answer_text(model->picture.gpus, "limits"))
        put_part(line, screen, STYLE_DIM, "%s", answer_text(model->picture.gpus, "limits"));
}

/* As many of them as are worth their lines, on a screen of that height. */
static void put_problems(const struct top_model *model, struct top_screen *screen)
{
    size_t most = screen->height < 20 ? 0 : screen->height < 40 ? 2 : 5;
    struct top_problems problems;

    top_problems_find(model, &problems);
    for (size_t i = 0; i < problems.count && i < most; i++) {
        struct top_line *line = top_screen_line(screen, TOP_PLAIN);
        top_put(line, problems.items[i].is_grave ? STYLE_RED : STYLE_YELLOW, 2, false, "!");
        if (i + 1 == most && problems.count > most) {
            CLEANUP(free_ptr) char *more = xasprintf("(%zu more) ", problems.count - most);
            top_put_text(line, STYLE_DIM, screen->width - line->width, more);
        }
        top_put_text(line, problems.items[i].is_grave ? STYLE_RED : STYLE_YELLOW, screen->width - line->width,
                     problems.items[i].text);
    }
    top_problems_release(&problems);
}

static void put_header(const struct top_model *model, struct top_screen *screen)
{
    const char *trouble = answer_text(model->picture.status, "trouble");

    if (*model->lost) {
        CLEANUP(free_ptr) char *text = xasprintf("NO DAEMON for %" PRId64 " s, trying again", model->lost_s);
        top_put(top_screen_line(screen, TOP_ALARM), STYLE_NONE, screen->width, false, text);
    } else if (trouble) {
        CLEANUP(free_ptr) char *text = xasprintf("NOTHING CAN BE STORED: %s", trouble);
        top_put(top_screen_line(screen, TOP_ALARM), STYLE_NONE, screen->width, false, text);
    } else {
        put_jobs_line(model, screen);
    }
    if (screen->height >= 16)
        put_gpus_line(model, screen);
    put_problems(model, screen);
}

/* ---- The last line ---- */

static void put_status(const struct top_model *model, struct top_screen *screen)
{
    struct top_line *line = top_screen_line(screen, TOP_PLAIN);
    CLEANUP(free_ptr) char *text = NULL;

    if (model->typing) {
        text = xasprintf("/%s_   (name, user or state; Enter: keep, Esc: show all)", model->filter);
        top_put_text(line, STYLE_BOLD, screen->width, text);
    } else if (model->cancel_job >= 0) {
        text = *model->which ? xasprintf("cancel all these waiting jobs of the array, %.*s? y/n",
                                         (int)(strcspn(model->which, "&") - 4), model->which + 4)
                             : xasprintf("cancel job %" PRId64 "? y/n", model->cancel_job);
        top_put_text(line, STYLE_BOLD, screen->width, text);
    } else if (*model->message) {
        top_put_text(line, model->message_bad ? STYLE_RED : STYLE_BOLD, screen->width, model->message);
    } else if (*model->lost) {
        top_put_text(line, STYLE_RED, screen->width, model->lost);
    } else if (model->mode != TOP_LISTS) {
        put_part(line, screen, STYLE_DIM, "Esc back");
        put_part(line, screen, STYLE_DIM, "Up/Down PgUp/PgDn scroll");
        put_part(line, screen, STYLE_DIM, "End to the end");
    } else {
        put_part(line, screen, STYLE_DIM, "? help");
        put_part(line, screen, STYLE_DIM, "q quit");
        put_part(line, screen, STYLE_DIM, "Tab pane");
        if (!model->cluster) {
            put_part(line, screen, STYLE_DIM, "e why");
            put_part(line, screen, STYLE_DIM, "l log");
            put_part(line, screen, STYLE_DIM, "c cancel");
            put_part(line, screen, STYLE_DIM, "h hold");
        }
        put_part(line, screen, STYLE_DIM, "< > sort");
        put_part(line, screen, STYLE_DIM, "/ filter");
        put_part(line, screen, STYLE_DIM, "u mine");
        if (!model->cluster)
            put_part(line, screen, STYLE_DIM, "a arrays");
    }
}

/* ---- The panes ---- */

static void scroll_to_selected(struct top_model *model, enum top_pane pane, size_t page)
{
    struct top_cursor *cursor = &model->cursors[pane];
    size_t rows = top_model_rows(model, pane);

    model->page[pane] = page;
    if (cursor->offset + page > rows)
        cursor->offset = rows > page ? rows - page : 0;
    if (cursor->selected < cursor->offset)
        cursor->offset = cursor->selected;
    if (page && cursor->selected >= cursor->offset + page)
        cursor->offset = cursor->selected - page + 1;
}

static void put_lists(struct top_model *model, struct top_screen *screen, size_t available)
{
    size_t wants[TOP_PANES], rows[TOP_PANES];

    for (enum top_pane pane = 0; pane < TOP_PANES; pane++) {
        size_t count = top_model_rows(model, pane);
        wants[pane] = 1 + (count ? count : 1);
    }
    top_share_rows(wants, TOP_PANES, model->focus, available, rows);
    for (enum top_pane pane = 0; pane < TOP_PANES; pane++)
        scroll_to_selected(model, pane, rows[pane] ? rows[pane] - 1 : 0);
    top_view_gpus(model, screen, rows[TOP_GPUS]);
    top_view_jobs(model, TOP_RUNNING, screen, rows[TOP_RUNNING]);
    top_view_jobs(model, TOP_QUEUE, screen, rows[TOP_QUEUE]);
}

static void put_row(void *user, const char *row)
{
    struct top_screen *screen = user;

    top_put(top_screen_line(screen, TOP_PLAIN), STYLE_NONE, screen->width, false, row);
}

static void put_text(struct top_model *model, struct top_screen *screen, size_t available)
{
    size_t wants[2] = {1 + model->gpu_count, available}, rows[2] = {0, available};
    CLEANUP(free_ptr)
    char *title = model->mode == TOP_HELP  ? xstrdup("KEYS")
                  : model->mode == TOP_LOG ? xasprintf("OUTPUT OF JOB %" PRId64, model->shown_job)
                                           : xasprintf("JOB %" PRId64, model->shown_job);

    if (model->mode != TOP_HELP && screen->height >= GPUS_BESIDE_TEXT) {
        size_t third = available / 3;
        rows[0] = wants[0] < third ? wants[0] : third;
        rows[1] = available - rows[0];
        scroll_to_selected(model, TOP_GPUS, rows[0] - 1);
        top_view_gpus(model, screen, rows[0]);
    }
    top_put(top_screen_line(screen, TOP_TITLE_FOCUSED), STYLE_BOLD, screen->width, false, title);
    model->page[model->focus] = rows[1] - 1;
    top_text_show(&model->text, screen->width, rows[1] - 1, put_row, screen);
}

void top_view(struct top_model *model, struct top_screen *screen)
{
    if (screen->width < TOP_LEAST_WIDTH || screen->height < TOP_LEAST_HEIGHT) {
        if (screen->height)
            top_put_text(top_screen_line(screen, TOP_PLAIN), STYLE_BOLD, screen->width,
                         "too small: 40x10 or more, please");
        return;
    }
    screen->stale = *model->lost;
    put_header(model, screen);
    if (model->mode == TOP_LISTS)
        put_lists(model, screen, screen->height - screen->used - 1);
    else
        put_text(model, screen, screen->height - screen->used - 1);
    screen->used = screen->height - 1;
    put_status(model, screen);
}
