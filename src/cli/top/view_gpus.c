/* The GPUs' pane of `carma top`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/show/answer.h"
#include "cli/top/answer.h"

enum { GPU, NODE, NAME, BAR, USED, TAKEN, TOTAL, SM, SOURCE, POWER, HEAT, SHARE, JOBS, COLUMNS };

static const struct top_column columns[COLUMNS] = {
    [GPU] = {"GPU", true, 3, 3, 0},      [NODE] = {"NODE", false, 0, 0, 0}, [NAME] = {"NAME", false, 10, 22, 7},
    [BAR] = {"MEMORY", false, 8, 32, 0}, [USED] = {"USED", true, 6, 6, 0},  [TAKEN] = {"TAKEN", true, 6, 6, 4},
    [TOTAL] = {"TOTAL", true, 6, 6, 0},  [SM] = {"SM", true, 4, 4, 0},      [SOURCE] = {"SRC", false, 4, 4, 8},
    [POWER] = {"POWER", true, 5, 5, 5},  [HEAT] = {"TEMP", true, 4, 4, 9},  [SHARE] = {"SHARE", false, 9, 9, 6},
    [JOBS] = {"JOBS", false, 6, 30, 0},
};

static const char *source_of(const json_t *gpu)
{
    const char *source = answer_text(json_object_get(json_object_get(gpu, "metrics"), "sm_activity"), "source");

    return !source || strcmp(source, "none") == 0 ? "-" : strcmp(source, "utilization") == 0 ? "util" : source;
}

/* The maker's name would only take space; so would the whole GPU's name for an instance. */
static const char *short_name(const json_t *gpu, bool instance)
{
    const char *name = answer_text(gpu, "name"), *profile = name && instance ? strstr(name, "MIG ") : NULL;

    if (profile)
        return profile;
    return name && strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name;
}

static void put_name(struct top_line *line, const struct top_gpu *gpu, size_t width)
{
    const char *name = short_name(gpu->json, gpu->instance);
    CLEANUP(free_ptr) char *text = xasprintf("%s%s", gpu->instance ? " " : "", name ? name : "-");

    top_put(line, STYLE_NONE, width, false, text);
}

static size_t columns_of(int64_t part, int64_t whole, size_t width)
{
    if (part <= 0 || whole <= 0)
        return 0;
    if (part >= whole)
        return width;
    return (size_t)((double)part / (double)whole * (double)width + 0.5);
}

static void put_times(struct top_line *line, enum term_style style, size_t count, const char *piece)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    for (size_t i = 0; i < count; i++)
        strbuf_puts(&out, piece);
    if (count)
        top_put(line, style, count, false, out.text);
}

/* In use; taken beyond that; free. */
static void put_bar(struct top_line *line, const struct top_gpu *gpu, size_t width)
{
    int64_t total = answer_integer(gpu->json, "total_bytes", 0),
            used_bytes = answer_integer(gpu->json, "used_bytes", 0);
    size_t used = columns_of(used_bytes, total, width), taken = columns_of(gpu->taken_bytes, total, width);

    if (taken < used)
        taken = used;
    put_times(line, STYLE_BLUE, used, term_utf8() ? "█" : "#");
    put_times(line, STYLE_YELLOW, taken - used, term_utf8() ? "▒" : "+");
    put_times(line, STYLE_DIM, width - taken, term_utf8() ? "░" : ".");
}

static enum term_style activity_style(int64_t permille)
{
    return permille >= 800 ? STYLE_RED : permille >= 400 ? STYLE_YELLOW : permille > 0 ? STYLE_GREEN : STYLE_DIM;
}

static void put_activity(struct top_line *line, const json_t *gpu, size_t width)
{
    int64_t permille = answer_integer(gpu, "sm_activity_permille", -1);
    char text[32] = "-";

    if (permille >= 0)
        snprintf(text, sizeof text, "%s%" PRId64 "%%", strcmp(source_of(gpu), "util") == 0 ? "~" : "",
                 (permille + 5) / 10);
    top_put(line, activity_style(permille), width, true, text);
}

/* Its faults come first: a narrow column must not cut them off. That it is reserved is none: the jobs go before it. */
static void put_jobs(struct top_line *line, const json_t *gpu, size_t width)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    int64_t xid = answer_integer(json_object_get(gpu, "xid"), "code", -1),
            servers = answer_integer(gpu, "mps_server_bytes", 0);
    int64_t unmanaged = answer_integer(gpu, "unmanaged_bytes", 0) - servers;
    bool lost = answer_true(gpu, "lost"), drained = answer_is_drained(gpu), reserved = answer_is_reserved(gpu);
    char bytes[UNITS_TEXT];
    CLEANUP(free_ptr) char *jobs = answer_gpu_jobs(gpu);

    strbuf_puts(&out, lost ? "LOST" : drained ? "DRAINED" : answer_is_heading(gpu) ? "MIG:" : "");
    if (xid >= 0)
        strbuf_printf(&out, "%sXid %" PRId64, out.length ? " " : "", xid);
    if (*jobs)
        strbuf_printf(&out, "%s%s", out.length ? " " : "", jobs);
    if (reserved && !lost && !drained)
        strbuf_printf(&out, "%sRESERVED", out.length ? " " : "");
    if (servers > 0)
        strbuf_printf(&out, "%s+MPS %s", out.length ? " " : "", top_short_bytes(servers, bytes));
    if (unmanaged > 0)
        strbuf_printf(&out, "%s+unmanaged %s", out.length ? " " : "", top_short_bytes(unmanaged, bytes));
    top_put(line,
            lost || xid >= 0      ? STYLE_RED
            : drained || reserved ? STYLE_YELLOW
                                  : STYLE_NONE,
            width, false, out.text);
}

static void put_number(struct top_line *line, const char *unit, int64_t number, size_t width)
{
    char text[32] = "-";

    if (number >= 0)
        snprintf(text, sizeof text, "%" PRId64 "%s%s", number, *unit ? " " : "", unit);
    top_put(line, STYLE_NONE, width, true, text);
}

static void put_bytes(struct top_line *line, int64_t bytes, size_t width)
{
    char text[UNITS_TEXT];

    top_put(line, STYLE_NONE, width, true, top_short_bytes(bytes, text));
}

static void put_cell(struct top_line *line, const struct top_gpu *gpu, int column, size_t width)
{
    const json_t *json = gpu->json;
    int64_t power = answer_integer(json, "power_mw", -1);

    switch (column) {
    case GPU:
        put_number(line, "", answer_integer(json, "index", -1), width);
        break;
    case NODE:
        top_put(line, STYLE_NONE, width, false, answer_text(json, "node"));
        break;
    case NAME:
        put_name(line, gpu, width);
        break;
    case BAR:
        put_bar(line, gpu, width);
        break;
    case USED:
        put_bytes(line, answer_integer(json, "used_bytes", -1), width);
        break;
    case TAKEN:
        put_bytes(line, gpu->taken_bytes, width);
        break;
    case TOTAL:
        put_bytes(line, answer_integer(json, "total_bytes", -1), width);
        break;
    case SM:
        put_activity(line, json, width);
        break;
    case SOURCE:
        top_put(line, STYLE_NONE, width, false, source_of(json));
        break;
    case POWER: /* an instance's is its parent's */
        put_number(line, "W", power < 0 || gpu->instance ? -1 : (power + 500) / 1000, width);
        break;
    case HEAT:
        put_number(line, "C", answer_integer(json_object_get(json, "health"), "temperature_c", -1), width);
        break;
    case SHARE:
        top_put(line, STYLE_NONE, width, false, answer_text(json, "share") ? answer_text(json, "share") : "-");
        break;
    default:
        put_jobs(line, json, width);
        break;
    }
}

/* A node of many, which does not answer: why, over all columns behind its name. */
static void put_silent(struct top_line *line, const json_t *json, const size_t *widths, size_t width)
{
    top_put(line, STYLE_NONE, widths[GPU] + 1, false, "");
    top_put(line, STYLE_NONE, widths[NODE] + 1, false, answer_text(json, "node"));
    top_put_text(line, STYLE_RED, width - line->width, answer_text(json, "error"));
}

void top_view_gpus(const struct top_model *model, struct top_screen *screen, size_t rows)
{
    const struct top_cursor *cursor = &model->cursors[TOP_GPUS];
    bool focused = model->focus == TOP_GPUS;
    struct top_column shown[COLUMNS];
    struct top_line *line;
    size_t widths[COLUMNS];

    if (!rows)
        return;
    memcpy(shown, columns, sizeof shown);
    if (model->cluster)
        shown[NODE].least = TOP_NODE_LEAST, shown[NODE].most = TOP_NODE_MOST;
    top_fit(shown, COLUMNS, screen->width, widths);
    line = top_screen_line(screen, focused ? TOP_TITLE_FOCUSED : TOP_TITLE);
    top_view_titles(line, shown, widths, COLUMNS, COLUMNS);
    for (size_t row = 0; row + 1 < rows; row++) {
        size_t at = cursor->offset + row;
        line = top_screen_line(screen, focused && at == cursor->selected ? TOP_SELECTED : TOP_PLAIN);
        if (at < model->gpu_count && answer_text(model->gpus[at].json, "error")) {
            put_silent(line, model->gpus[at].json, widths, screen->width);
            continue;
        }
        for (int i = 0; at < model->gpu_count && i < COLUMNS; i++) {
            if (!widths[i])
                continue;
            if (i)
                top_put(line, STYLE_NONE, 1, false, "");
            put_cell(line, &model->gpus[at], i, widths[i]);
        }
    }
}
