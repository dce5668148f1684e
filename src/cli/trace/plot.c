#include "cli/trace/plot.h"

#include <math.h>
#include <stdbool.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/show/svg.h"

/* Rows of panels, in pixels. */
#define WIDTH      860.0
#define LEFT       80.0
#define FULL       (WIDTH - LEFT - 30)
#define TOP        70.0
#define ROW        230.0 /* from one row to the next */
#define ROW_HEIGHT 150.0

/* "15 min", "2 d"; owned by the caller. */
static char *length_text(int64_t ns)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;

    while (i + 1 < array_size(units) && ns % (units[i].seconds * NS_PER_SEC))
        i++;
    return xasprintf("%g %s", (double)ns / 1e9 / (double)units[i].seconds, units[i].name);
}

/* A row over the time of the bins, in the unit that suits it; x_label is the unit. */
static struct svg_panel time_panel(const struct trace_demand *demand, double top, double *unit_s)
{
    double begin_s = (double)demand->first_ns / 1e9;
    double end_s = begin_s + (double)demand->bin_count * (double)demand->bin_ns / 1e9;
    struct svg_panel panel = {.left = LEFT, .top = top, .width = FULL, .height = ROW_HEIGHT};

    *unit_s = svg_time_unit(end_s - begin_s, &panel.x_label);
    panel.x_low = begin_s / *unit_s;
    panel.x_high = end_s / *unit_s;
    return panel;
}

static void plot_arrivals(struct svg *svg, const struct trace_demand *demand, double top)
{
    double unit_s, width, most = 0;
    struct svg_panel panel = time_panel(demand, top, &unit_s);
    CLEANUP(free_ptr) char *length = length_text(demand->bin_ns);
    CLEANUP(free_ptr) char *title = xasprintf("arrivals per %s", length);
    CLEANUP(free_ptr) char *label = xasprintf("time (%s)", panel.x_label);

    width = (double)demand->bin_ns / 1e9 / unit_s;
    for (size_t i = 0; i < demand->bin_count; i++)
        most = fmax(most, (double)demand->bins[i].arrivals);
    panel.title = title;
    panel.x_label = label;
    panel.y_label = "jobs";
    panel.y_high = svg_round_up(most);
    svg_axes(svg, &panel);
    for (size_t i = 0; i < demand->bin_count; i++) {
        double x = panel.x_low + (double)i * width;
        svg_box(svg, &panel, x + width * 0.04, 0, x + width * 0.96, (double)demand->bins[i].arrivals, svg_colour(0),
                NULL);
    }
}

static void plot_demand(struct svg *svg, const struct trace_demand *demand, double top)
{
    CLEANUP(free_ptr) double *xs = xcalloc(demand->bin_count, sizeof *xs);
    CLEANUP(free_ptr) double *ys = xcalloc(demand->bin_count, sizeof *ys);
    double unit_s, most = 0;
    struct svg_panel panel = time_panel(demand, top, &unit_s);
    CLEANUP(free_ptr) char *length = length_text(demand->bin_ns);
    CLEANUP(free_ptr) char *title = xasprintf("GPUs wanted if no job waited, mean of each %s", length);
    CLEANUP(free_ptr) char *label = xasprintf("time (%s)", panel.x_label);

    for (size_t i = 0; i < demand->bin_count; i++) {
        xs[i] = panel.x_low + (double)i * (double)demand->bin_ns / 1e9 / unit_s;
        ys[i] = demand->bins[i].gpus_wanted;
        most = fmax(most, ys[i]);
    }
    panel.title = title;
    panel.x_label = label;
    panel.y_label = "GPUs";
    panel.y_high = svg_round_up(most);
    svg_axes(svg, &panel);
    svg_stack(svg, &panel, xs, ys, demand->bin_count, 1);
}

/* Bars over categories, in percent of the jobs; nothing where there are none. */
static void plot_shares(struct svg *svg, double left, double width, double top, const char *title,
                        const char *const *names, const size_t *counts, size_t count, size_t colour)
{
    struct svg_panel panel = {.left = left, .top = top, .width = width, .height = ROW_HEIGHT};
    size_t all = 0, most = 0;

    for (size_t i = 0; i < count; i++) {
        all += counts[i];
        most = counts[i] > most ? counts[i] : most;
    }
    if (all == 0)
        return;
    panel.title = title;
    panel.x_names = names;
    panel.x_name_count = count;
    panel.x_high = (double)count;
    panel.y_high = svg_round_up(100.0 * (double)most / (double)all);
    panel.y_label = "% of jobs";
    svg_axes(svg, &panel);
    for (size_t i = 0; i < count; i++)
        svg_box(svg, &panel, (double)i + 0.15, 0, (double)i + 0.85, 100.0 * (double)counts[i] / (double)all,
                svg_colour(colour), NULL);
}

#define RANGES 6

static void plot_run_times(struct svg *svg, const struct trace *trace, double top)
{
    static const char *const names[RANGES] = {"<1m", "<10m", "<1h", "<6h", "<1d", "longer"};
    static const int64_t below_s[RANGES - 1] = {60, 600, 3600, 21600, 86400};
    size_t counts[RANGES] = {0};

    for (size_t i = 0; i < trace->count; i++) {
        int64_t ns = trace_job_duration_ns(&trace->items[i]);
        size_t range = 0;
        while (range < RANGES - 1 && ns >= below_s[range] * NS_PER_SEC)
            range++;
        counts[range]++;
    }
    plot_shares(svg, LEFT, 220, top, "run times", names, counts, RANGES, 1);
}

static void plot_widths(struct svg *svg, const struct trace *trace, double top)
{
    static const char *const names[RANGES] = {"1", "2", "3-4", "5-8", "9-16", "more"};
    static const uint32_t up_to[RANGES - 1] = {1, 2, 4, 8, 16};
    size_t counts[RANGES] = {0};

    for (size_t i = 0; i < trace->count; i++) {
        size_t range = 0;
        while (range < RANGES - 1 && trace->items[i].gpus > up_to[range])
            range++;
        counts[range]++;
    }
    plot_shares(svg, LEFT + 290, 200, top, "GPUs of a job", names, counts, RANGES, 2);
}

static void plot_classes(struct svg *svg, const struct trace_demand *demand, double top)
{
    const char *names[WORKLOAD_CLASS_COUNT];

    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++)
        names[c] = workload_class_name((enum workload_class)c);
    plot_shares(svg, LEFT + 560, FULL - 560, top, "workloads", names, demand->class_jobs, WORKLOAD_CLASS_COUNT, 3);
}

int trace_plot(const char *path, const char *title, const struct trace *trace, const struct trace_demand *demand,
               struct error *err)
{
    bool timeless = trace->format == TRACE_RUN_TIMES;
    double shares_top = timeless ? TOP : TOP + 2 * ROW;
    CLEANUP(svg_free_at) struct svg *svg = svg_new(WIDTH, shares_top + ROW - 20, title);

    if (!timeless) {
        plot_arrivals(svg, demand, TOP);
        plot_demand(svg, demand, TOP + ROW);
        plot_widths(svg, trace, shares_top);
    }
    plot_run_times(svg, trace, shares_top);
    plot_classes(svg, demand, shares_top);
    return svg_write(svg, path, err);
}
