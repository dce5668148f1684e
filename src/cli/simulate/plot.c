/* Pictures of a simulation, as the thesis's figures 6.5 to 6.15 have them: bars per policy, and GPUs over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/show/svg.h"
#include "cli/simulate/simulate.h"

/* ---- Bars ---- */

#define BAR_PANEL_PX  210.0
#define BAR_LEAST_PX  300.0 /* wide */
#define BAR_WIDE_PX   800.0 /* from here on, panels stand below one another */
#define LETTER_PX     7.2
#define BAR_MARGIN_PX 70.0

static void draw_bars(struct svg *svg, const struct simulate_outcome *outcomes, size_t count,
                      enum simulate_figure figure, const char *title, double unit, const char *unit_name, double left,
                      double top, double width)
{
    struct svg_panel panel = {.left = left,
                              .top = top,
                              .width = width,
                              .height = BAR_PANEL_PX,
                              .x_high = (double)count,
                              .title = title,
                              .y_label = unit_name};
    CLEANUP(free_ptr) const char **names = xcalloc(count, sizeof *names);
    double highest = 0;

    for (size_t i = 0; i < count; i++) {
        names[i] = outcomes[i].policy;
        highest = fmax(highest, simulate_mean(&outcomes[i], figure) / unit);
    }
    panel.y_high = svg_round_up(highest);
    panel.x_names = names;
    panel.x_name_count = count;
    svg_axes(svg, &panel);
    for (size_t i = 0; i < count; i++) {
        double mean = simulate_mean(&outcomes[i], figure) / unit, sd = simulate_sd(&outcomes[i], figure) / unit;
        if (isnan(mean))
            continue;
        CLEANUP(free_ptr) char *tip = xasprintf("%s: %.3g %s, s.d. %.2g", outcomes[i].policy, mean, unit_name, sd);
        svg_box(svg, &panel, (double)i + 0.2, 0, (double)i + 0.8, mean, svg_colour(i), tip);
    }
}

/* Room for each policy's name below its bar. */
static double panel_width(const struct simulate_outcome *outcomes, size_t count)
{
    size_t longest = 0;

    for (size_t i = 0; i < count; i++)
        longest = strlen(outcomes[i].policy) > longest ? strlen(outcomes[i].policy) : longest;
    return fmax(BAR_LEAST_PX, (double)count * (LETTER_PX * (double)longest + 16));
}

int simulate_plot_outcomes(const char *directory, const struct simulate_outcome *outcomes, size_t count,
                           struct error *err)
{
    static const struct {
        enum simulate_figure figure;
        const char *title;
    } plots[] = {{SIM_MAKESPAN, "makespan"},
                 {SIM_WAIT, "wait time, mean of the jobs"},
                 {SIM_JCT, "JCT, mean of the jobs"},
                 {SIM_ENERGY, "energy"}};
    CLEANUP(free_ptr) char *path = xasprintf("%s/compare.svg", directory);
    double width = panel_width(outcomes, count), step_x = width + BAR_MARGIN_PX + 20, step_y = BAR_PANEL_PX + 70;
    size_t across = width < BAR_WIDE_PX ? 2 : 1, down = array_size(plots) / across;
    CLEANUP(svg_free_at)
    struct svg *svg =
        svg_new((double)across * step_x + 20, (double)down * step_y + 40, "Policies compared (simulated)");

    for (size_t i = 0; i < array_size(plots); i++) {
        const char *unit_name = "MJ";
        double unit = 1e6;
        if (plots[i].figure != SIM_ENERGY) {
            double highest = 0;
            for (size_t k = 0; k < count; k++)
                highest = fmax(highest, simulate_mean(&outcomes[k], plots[i].figure));
            unit = svg_time_unit(highest, &unit_name);
        }
        draw_bars(svg, outcomes, count, plots[i].figure, plots[i].title, unit, unit_name,
                  BAR_MARGIN_PX + (double)(i % across) * step_x, 70 + (double)(i / across) * step_y, width);
    }
    return svg_write(svg, path, err);
}

/* ---- Time lines ---- */

#define LINE_WIDTH_PX  900.0
#define LINE_HEIGHT_PX 170.0

enum quantity { MEMORY, ACTIVITY, POWER, QUANTITY_COUNT };

static double value_of(const struct timeline_point *point, enum quantity quantity)
{
    switch (quantity) {
    case MEMORY:
        return (double)point->used_bytes / (double)GIB;
    case ACTIVITY:
        return point->activity * 100;
    default:
        return point->power_w;
    }
}

static double idle_of(const struct sim_node *node, enum quantity quantity)
{
    return quantity == POWER ? node->idle_w : 0;
}

/* One line per GPU. */
static void draw_gpus(struct svg *svg, const struct svg_panel *panel, const struct timeline *timeline,
                      const struct sim_node *node, enum quantity quantity, double unit_s)
{
    CLEANUP(free_ptr) double *xs = xcalloc(timeline->count + 1, sizeof *xs);
    CLEANUP(free_ptr) double *ys = xcalloc(timeline->count + 1, sizeof *ys);

    for (uint32_t gpu = 0; gpu < timeline->gpu_count; gpu++) {
        size_t count = 1;
        ys[0] = idle_of(node, quantity);
        for (size_t i = 0; i < timeline->count; i++) {
            if (timeline->points[i].gpu != gpu)
                continue;
            xs[count] = (double)(timeline->points[i].at_ns - timeline->begin_ns) / 1e9 / unit_s;
            ys[count++] = value_of(&timeline->points[i], quantity);
        }
        svg_steps(svg, panel, xs, ys, count, svg_colour(gpu));
    }
}

/* More GPUs than colours: their mean. */
static void draw_mean(struct svg *svg, const struct svg_panel *panel, const struct timeline *timeline,
                      const struct sim_node *node, enum quantity quantity, double unit_s)
{
    CLEANUP(free_ptr) double *xs = xcalloc(timeline->count + 1, sizeof *xs);
    CLEANUP(free_ptr) double *ys = xcalloc(timeline->count + 1, sizeof *ys);
    CLEANUP(free_ptr) double *now = xcalloc(timeline->gpu_count, sizeof *now);
    double sum = idle_of(node, quantity) * timeline->gpu_count;

    for (uint32_t gpu = 0; gpu < timeline->gpu_count; gpu++)
        now[gpu] = idle_of(node, quantity);
    for (size_t i = 0; i < timeline->count; i++) {
        double value = value_of(&timeline->points[i], quantity);
        sum += value - now[timeline->points[i].gpu];
        now[timeline->points[i].gpu] = value;
        xs[i] = (double)(timeline->points[i].at_ns - timeline->begin_ns) / 1e9 / unit_s;
        ys[i] = sum / timeline->gpu_count;
    }
    svg_steps(svg, panel, xs, ys, timeline->count, svg_colour(0));
}

static void draw_legend(struct svg *svg, const struct timeline *timeline)
{
    char text[SVG_COLOURS][16];
    const char *names[SVG_COLOURS];

    for (uint32_t gpu = 0; gpu < timeline->gpu_count && gpu < SVG_COLOURS; gpu++) {
        snprintf(text[gpu], sizeof text[gpu], "GPU %u", gpu);
        names[gpu] = text[gpu];
    }
    svg_legend(svg, BAR_MARGIN_PX, 44, names, timeline->gpu_count);
}

/* A policy may have settings behind a slash. */
static char *file_name(const char *policy)
{
    char *name = xstrdup(policy);

    for (char *slash = name; (slash = strchr(slash, '/'));)
        *slash = ',';
    return name;
}

int simulate_plot_timeline(const char *directory, const char *policy, const struct timeline *timeline,
                           const struct sim_node *node, struct error *err)
{
    const char *const titles[QUANTITY_COUNT] = {"memory in use", "SM activity", "power"};
    const char *const units[QUANTITY_COUNT] = {"GiB", "%", "W"};
    const double highest[QUANTITY_COUNT] = {(double)node->total_bytes / (double)GIB, 100, node->full_w};
    CLEANUP(free_ptr) char *name = file_name(policy);
    CLEANUP(free_ptr) char *path = xasprintf("%s/timeline-%s.svg", directory, name);
    CLEANUP(free_ptr) char *title = xasprintf("%s (simulated)", policy);
    double step = LINE_HEIGHT_PX + 62,
           span_s = timeline->count ? (double)(timeline->end_ns - timeline->begin_ns) / 1e9 : 0, unit_s;
    CLEANUP(svg_free_at)
    struct svg *svg = svg_new(LINE_WIDTH_PX + BAR_MARGIN_PX + 30, 90 + QUANTITY_COUNT * step, title);
    const char *unit_name;

    unit_s = svg_time_unit(span_s, &unit_name);
    if (timeline->gpu_count <= SVG_COLOURS)
        draw_legend(svg, timeline);
    else
        svg_text(svg, BAR_MARGIN_PX, 44, SVG_START, 12, "mean of the GPUs");
    for (enum quantity q = 0; q < QUANTITY_COUNT; q++) {
        struct svg_panel panel = {.left = BAR_MARGIN_PX,
                                  .top = 80 + q * step,
                                  .width = LINE_WIDTH_PX,
                                  .height = LINE_HEIGHT_PX,
                                  .x_high = span_s / unit_s,
                                  .y_high = svg_round_up(highest[q]),
                                  .title = titles[q],
                                  .x_label = q + 1 == QUANTITY_COUNT ? unit_name : NULL,
                                  .y_label = units[q]};
        svg_axes(svg, &panel);
        if (timeline->gpu_count <= SVG_COLOURS)
            draw_gpus(svg, &panel, timeline, node, q, unit_s);
        else
            draw_mean(svg, &panel, timeline, node, q, unit_s);
    }
    return svg_write(svg, path, err);
}
