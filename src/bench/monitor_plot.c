#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "bench/monitor.h"
#include "cli/show/svg.h"

/* Rows of panels, in pixels: the content of Table 3.2 and Figures 3.2 to 3.4 of the thesis. */
#define WIDTH      1120.0
#define TOP        90.0
#define ROW        230.0
#define ROW_HEIGHT 150.0
#define COLUMN     260.0
#define PANEL      190.0
#define LEFT       90.0
#define SMOOTH_S   1.0 /* wall: processor time is counted in hundredths of a second */

/* Bars for each source that is present, light and heavy beside one another; `value` below 0: none. */
static void plot_bars(struct svg *svg, const struct bench_monitor *bench, double left, double width, double top,
                      const char *title, const char *y_label, double (*value)(const struct bench_summary *summary),
                      double most)
{
    static const char *const names[BENCH_LOADS] = {"light", "heavy"};
    struct svg_panel panel = {.left = left,
                              .top = top,
                              .width = width,
                              .height = ROW_HEIGHT,
                              .title = title,
                              .y_label = y_label,
                              .x_names = names,
                              .x_name_count = BENCH_LOADS,
                              .x_high = BENCH_LOADS};
    double values[BENCH_LOADS][BENCH_SOURCES];
    size_t place[BENCH_SOURCES], places = 0;

    for (int source = 0; source < BENCH_SOURCES; source++) {
        place[source] = places;
        places += bench->cells[BENCH_LIGHT][source].present || bench->cells[BENCH_HEAVY][source].present;
    }
    for (int load = 0; load < BENCH_LOADS; load++) {
        for (int source = 0; source < BENCH_SOURCES; source++) {
            struct bench_summary summary;
            values[load][source] = -1;
            if (!bench->cells[load][source].present)
                continue;
            summary = bench_monitor_summary(bench, load, source);
            values[load][source] = value(&summary);
            panel.y_high = fmax(panel.y_high, values[load][source]);
        }
    }
    panel.y_high = most > 0 ? most : svg_round_up(panel.y_high);
    svg_axes(svg, &panel);
    for (int load = 0; load < BENCH_LOADS; load++) {
        for (int source = 0; source < BENCH_SOURCES; source++) {
            double x = load + 0.1 + 0.8 * (double)place[source] / (double)places;
            CLEANUP(free_ptr) char *tip = xasprintf("%s: %g", bench_source_name(source), values[load][source]);
            if (values[load][source] >= 0)
                svg_box(svg, &panel, x, 0, x + 0.75 / (double)places, values[load][source],
                        svg_colour((size_t)source), tip);
        }
    }
}

static double ratio_of(const struct bench_summary *summary)
{
    return summary->ratio;
}

static double logged_of(const struct bench_summary *summary)
{
    return summary->logged_bytes / 1024;
}

static double sm_of(const struct bench_summary *summary)
{
    return summary->metrics[GPU_SM_ACTIVITY] * 100;
}

static double occupancy_of(const struct bench_summary *summary)
{
    return summary->metrics[GPU_SM_OCCUPANCY] * 100;
}

static double dram_of(const struct bench_summary *summary)
{
    return summary->metrics[GPU_DRAM_ACTIVITY] * 100;
}

struct what {
    bool tool;   /* else the job */
    bool memory; /* else processor time */
};

static double memory_of(const struct bench_sample *sample, bool tool)
{
    return (double)(tool ? sample->tool_memory_bytes : sample->job_memory_bytes) / (1 << 20);
}

/* Percent of a core, over about SMOOTH_S until the i-th sample. */
static double cpu_of(const struct bench_sample *samples, size_t i, bool tool)
{
    double wall_s, from_s, cpu_s;
    size_t from = i;

    while (from > 0 && (samples[i].at_s - samples[from].at_s) / nodetime_scale() < SMOOTH_S)
        from--;
    wall_s = (samples[i].at_s - samples[from].at_s) / nodetime_scale();
    from_s = tool ? samples[from].tool_cpu_s : samples[from].job_cpu_s;
    cpu_s = (tool ? samples[i].tool_cpu_s : samples[i].job_cpu_s) - from_s;
    return wall_s > 0 ? 100 * cpu_s / wall_s : 0;
}

/* The first repeat of every source, over time. */
static void plot_times(struct svg *svg, const struct bench_monitor *bench, enum bench_load load, struct what what,
                       double left, double top)
{
    CLEANUP(free_ptr)
    char *title = xasprintf("%s of the %s, %s", what.memory ? "memory" : "CPU", what.tool ? "tool" : "job",
                            bench_load_name(load));
    struct svg_panel panel = {.left = left,
                              .top = top,
                              .width = PANEL,
                              .height = ROW_HEIGHT,
                              .title = title,
                              .x_label = "time (s)",
                              .y_label = what.memory ? "MiB" : "% of a core"};
    double *ys[BENCH_SOURCES] = {NULL};

    for (int source = 0; source < BENCH_SOURCES; source++) {
        const struct bench_cell *cell = &bench->cells[load][source];
        if (!cell->present)
            continue;
        ys[source] = xcalloc(cell->runs[0].sample_count, sizeof(double));
        for (size_t i = 0; i < cell->runs[0].sample_count; i++) {
            const struct bench_sample *samples = cell->runs[0].samples;
            ys[source][i] = what.memory ? memory_of(&samples[i], what.tool) : cpu_of(samples, i, what.tool);
            panel.y_high = fmax(panel.y_high, ys[source][i]);
            panel.x_high = fmax(panel.x_high, samples[i].at_s);
        }
    }
    panel.y_high = svg_round_up(panel.y_high);
    svg_axes(svg, &panel);
    for (int source = 0; source < BENCH_SOURCES; source++) {
        const struct bench_cell *cell = &bench->cells[load][source];
        CLEANUP(free_ptr) double *xs = NULL;
        if (!cell->present)
            continue;
        xs = xcalloc(cell->runs[0].sample_count, sizeof *xs);
        for (size_t i = 0; i < cell->runs[0].sample_count; i++)
            xs[i] = cell->runs[0].samples[i].at_s;
        svg_line(svg, &panel, xs, ys[source], cell->runs[0].sample_count, svg_colour((size_t)source));
        free_ptr(&ys[source]);
    }
}

int bench_monitor_plot(const struct bench_monitor *bench, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *title = xasprintf("What it costs to watch %s, by source%s", bench->setup.gpu_name,
                                               bench_simulated() ? " (simulated)" : "");
    CLEANUP(svg_free_at) struct svg *svg = svg_new(WIDTH, TOP + 4 * ROW - 20, title);
    const char *names[BENCH_SOURCES];

    for (int source = 0; source < BENCH_SOURCES; source++)
        names[source] = bench_source_name(source);
    svg_legend(svg, LEFT, 48, names, BENCH_SOURCES);
    plot_bars(svg, bench, LEFT, 2 * COLUMN - 70, TOP, "epoch time, relative to no tool", NULL, ratio_of, 0);
    plot_bars(svg, bench, LEFT + 2 * COLUMN, 2 * COLUMN - 70, TOP, "logged", "KiB", logged_of, 0);
    for (size_t i = 0; i < 4; i++) {
        double left = LEFT + (double)i * COLUMN;
        enum bench_load load = i < 2 ? BENCH_LIGHT : BENCH_HEAVY;
        plot_times(svg, bench, load, (struct what){.tool = i % 2}, left, TOP + ROW);
        plot_times(svg, bench, load, (struct what){.tool = i % 2, .memory = true}, left, TOP + 2 * ROW);
    }
    plot_bars(svg, bench, LEFT, COLUMN, TOP + 3 * ROW, "SM activity, as the source has it", "%", sm_of, 100);
    plot_bars(svg, bench, LEFT + COLUMN + 90, COLUMN, TOP + 3 * ROW, "SM occupancy", "%", occupancy_of, 100);
    plot_bars(svg, bench, LEFT + 2 * COLUMN + 180, COLUMN, TOP + 3 * ROW, "DRAM activity", "%", dram_of, 100);
    return svg_write(svg, path, err);
}
