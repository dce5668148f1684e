/* The results as the thesis's figures 4.1 to 4.12 have them: bars by degree or mix, one colour for each mode. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "bench/collocate.h"
#include "cli/show/svg.h"

#define PANEL_HEIGHT_PX 190.0
#define PANEL_LEAST_PX  320.0
#define MARGIN_PX       70.0
#define LETTER_PX       7.2
#define ACROSS          2

enum quantity { EPOCH, THROUGHPUT, TOTAL, ACTIVITY, MEMORY, PCIE, POWER, ENERGY, QUANTITIES };

static const struct {
    const char *title, *unit;
} panels[QUANTITIES] = {
    [EPOCH] = {"time per epoch, mean of the jobs", "s"},
    [THROUGHPUT] = {"throughput, alone = 1", NULL},
    [TOTAL] = {"makespan, of one after another", "%"},
    [ACTIVITY] = {"SM activity", "%"},
    [MEMORY] = {"GPU memory, highest", "GiB"},
    [PCIE] = {"traffic from the host", "GB/s"},
    [POWER] = {"power", "W"},
    [ENERGY] = {"energy per job", "kJ"},
};

/* NAN: not known. */
static double value_of(const struct collocate_plan *plan, const struct collocate_run *run, enum quantity quantity)
{
    const struct collocate_figures *figures = &run->figures;
    double sum = 0, value;

    switch (quantity) {
    case EPOCH:
        for (size_t i = 0; i < run->count; i++)
            sum += run->jobs[i].epoch_s;
        return sum / (double)run->count;
    case THROUGHPUT:
        value = collocate_throughput(plan, run);
        return value > 0 ? value : NAN;
    case TOTAL:
        value = collocate_serial_s(plan, run);
        return value > 0 ? (double)run->total_ns / 1e9 / value * 100 : NAN;
    case ACTIVITY:
        return figures->sources[GPU_SM_ACTIVITY] ? figures->metrics[GPU_SM_ACTIVITY] * 100 : NAN;
    case MEMORY:
        return figures->memory_peak_bytes >= 0 ? (double)figures->memory_peak_bytes / (double)GIB : NAN;
    case PCIE:
        return figures->sources[GPU_PCIE_RX] ? figures->metrics[GPU_PCIE_RX] / 1e9 : NAN;
    case POWER:
        return figures->power_w >= 0 ? figures->power_w : NAN;
    default:
        return figures->energy_j >= 0 ? figures->energy_j / (double)run->count / 1000 : NAN;
    }
}

/* Bars side by side: the runs of one label, a bar for each mode with results. */
struct groups {
    const char **labels; /* borrowed from the runs */
    size_t count;
    bool modes[COLLOCATE_MODES];
    size_t mode_count;
};

static size_t place_of(const struct groups *groups, enum collocate_mode mode)
{
    size_t place = 0;

    for (enum collocate_mode m = 0; m < mode; m++)
        place += groups->modes[m];
    return place;
}

static size_t group_of(const struct groups *groups, const char *label)
{
    size_t i = 0;

    while (i < groups->count && strcmp(groups->labels[i], label) != 0)
        i++;
    return i;
}

static void draw_panel(struct svg *svg, const struct collocate_plan *plan, const struct groups *groups,
                       enum quantity quantity, double left, double top, double width)
{
    struct svg_panel panel = {.left = left,
                              .top = top,
                              .width = width,
                              .height = PANEL_HEIGHT_PX,
                              .x_high = (double)groups->count,
                              .title = panels[quantity].title,
                              .y_label = panels[quantity].unit,
                              .x_names = groups->labels,
                              .x_name_count = groups->count};
    double highest = 0, bar = 0.8 / (double)groups->mode_count;

    for (size_t i = 0; i < plan->run_count; i++) {
        if (plan->runs[i].result == COLLOCATE_OK)
            highest = fmax(highest, value_of(plan, &plan->runs[i], quantity)); /* fmax passes over NAN */
    }
    panel.y_high = svg_round_up(highest);
    svg_axes(svg, &panel);
    for (size_t i = 0; i < plan->run_count; i++) {
        const struct collocate_run *run = &plan->runs[i];
        double value = run->result == COLLOCATE_OK ? value_of(plan, run, quantity) : NAN;
        size_t place = place_of(groups, run->mode);
        double x = (double)group_of(groups, run->label) + 0.1 + bar * (double)place;
        if (isnan(value))
            continue;
        CLEANUP(free_ptr)
        char *tip = xasprintf("%s, %s: %.4g %s", run->label, run->alone ? "alone" : collocate_mode_name(run->mode),
                              value, panels[quantity].unit ? panels[quantity].unit : "");
        svg_box(svg, &panel, x, 0, x + bar, value, svg_colour(place), tip);
    }
}

static bool has_data(const struct collocate_plan *plan, enum quantity quantity)
{
    for (size_t i = 0; i < plan->run_count; i++) {
        if (plan->runs[i].result == COLLOCATE_OK && !isnan(value_of(plan, &plan->runs[i], quantity)))
            return true;
    }
    return false;
}

int collocate_plot(const struct collocate_plan *plan, const char *path, struct error *err)
{
    CLEANUP(free_ptr) const char **labels = xcalloc(plan->run_count + 1, sizeof *labels);
    struct groups groups = {.labels = labels};
    const char *modes[COLLOCATE_MODES];
    size_t longest = 0, shown = 0, at = 0;

    for (size_t i = 0; i < plan->run_count; i++) {
        const char *label = plan->runs[i].label;
        if (plan->runs[i].result != COLLOCATE_OK)
            continue;
        groups.modes[plan->runs[i].mode] = true;
        if (group_of(&groups, label) < groups.count)
            continue;
        longest = strlen(label) > longest ? strlen(label) : longest;
        labels[groups.count++] = label;
    }
    for (enum collocate_mode mode = 0; mode < COLLOCATE_MODES; mode++) {
        if (groups.modes[mode])
            modes[groups.mode_count++] = collocate_mode_name(mode);
    }
    for (enum quantity q = 0; q < QUANTITIES; q++)
        shown += has_data(plan, q);
    double width = fmax(PANEL_LEAST_PX, (double)groups.count * (LETTER_PX * (double)longest + 14));
    double step_x = width + MARGIN_PX + 20, step_y = PANEL_HEIGHT_PX + 66;
    size_t down = (shown + ACROSS - 1) / ACROSS;
    CLEANUP(svg_free_at)
    struct svg *svg = svg_new(ACROSS * step_x + 20, (double)down * step_y + 60, "Training jobs that share a GPU");

    svg_legend(svg, MARGIN_PX, 44, modes, groups.mode_count);
    for (enum quantity q = 0; q < QUANTITIES; q++) {
        if (!has_data(plan, q))
            continue;
        draw_panel(svg, plan, &groups, q, MARGIN_PX + (double)(at % ACROSS) * step_x,
                   84 + (double)(at / ACROSS) * step_y, width);
        at++;
    }
    return svg_write(svg, path, err);
}
