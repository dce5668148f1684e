/* The report of carma bench monitor --kernel: JSON, a table, a plot. */
#include <math.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "bench/kernel.h"
#include "cli/show/svg.h"
#include "cli/show/table.h"

/* Those of Figure 3.1. */
static const struct shown {
    uint32_t metric;
    const char *title, *name;
} shown[] = {
    {GPU_GRAPHICS_ACTIVITY, "GRACT", "GRACT (any engine)"},
    {GPU_SM_ACTIVITY, "SMACT", "SMACT (SM activity)"},
    {GPU_SM_OCCUPANCY, "SMOCC", "SMOCC (SM occupancy)"},
};

json_t *bench_kernel_json(const struct bench_kernel *bench)
{
    json_t *points = json_array();

    for (size_t p = 0; p < bench->point_count; p++) {
        const struct bench_point *point = &bench->points[p];
        json_t *object = json_pack("{s:I, s:I}", "blocks", (json_int_t)point->blocks, "threads",
                                   (json_int_t)point->threads);
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
            if (metric == GPU_PCIE_TX || metric == GPU_PCIE_RX)
                continue;
            json_object_set_new(object, gpu_metric_name(metric),
                                point->metrics[metric] < 0
                                    ? json_null()
                                    : json_pack("{s:f, s:s}", "value", point->metrics[metric], "source",
                                                gpu_source_name(point->sources[metric])));
        }
        json_object_set_new(object, "utilization",
                            point->utilization < 0 ? json_null() : json_real(point->utilization));
        json_array_append_new(points, object);
    }
    return json_pack("{s:s, s:s, s:b, s:I, s:f, s:f, s:o}", "gpu", bench->setup.gpu, "gpu_name", bench->gpu.name,
                     "simulated", bench_simulated(), "sms",
                     (json_int_t)bench->gpu.sm_count, "time_scale", nodetime_scale(), "point_s",
                     (double)bench->point_ns / 1e9, "points", points);
}

static void share_cell(struct table *table, double share)
{
    if (share < 0)
        table_cell(table, STYLE_NONE, "-");
    else
        table_cell(table, STYLE_NONE, "%.1f%%", share * 100);
}

void bench_kernel_table(const struct bench_kernel *bench, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"BLOCKS", true, 0, 0}, {"THREADS", true, 0, 0}, {"UTILIZATION", true, 0, 0}, {"GRACT", true, 0, 0},
        {"SMACT", true, 0, 0},  {"SMOCC", true, 0, 0},   {"SOURCE", false, 0, 1},
    };
    struct table *table = table_new(columns, array_size(columns));

    strbuf_printf(out, "%s %s, %d SMs%s\n\n", bench->gpu.name, bench->setup.gpu, (int)bench->gpu.sm_count,
                  bench_simulated() ? "; a virtual node: simulated" : "");
    for (size_t p = 0; p < bench->point_count; p++) {
        const struct bench_point *point = &bench->points[p];
        table_cell(table, STYLE_NONE, "%u", point->blocks);
        table_cell(table, STYLE_NONE, "%u", point->threads);
        share_cell(table, point->utilization);
        for (size_t i = 0; i < array_size(shown); i++)
            share_cell(table, point->metrics[shown[i].metric]);
        table_cell(table, STYLE_NONE, "%s", gpu_source_name(point->sources[GPU_SM_ACTIVITY]));
    }
    table_format(table, width, colour, out);
    table_free(table);
}

#define WIDTH  1130.0
#define HEIGHT 360.0
#define LEFT   80.0
#define TOP    90.0
#define PANEL  160.0
#define COLUMN 210.0

/* A panel for each number of blocks, over the threads of a block. */
int bench_kernel_plot(const struct bench_kernel *bench, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *title = xasprintf("What the metrics say as a kernel grows, %s%s", bench->gpu.name,
                                               bench_simulated() ? " (simulated)" : "");
    CLEANUP(svg_free_at) struct svg *svg = svg_new(WIDTH, HEIGHT, title);
    const char *names[array_size(shown)];
    size_t first = 0;

    for (size_t i = 0; i < array_size(shown); i++)
        names[i] = shown[i].name;
    svg_legend(svg, LEFT, 48, names, array_size(names));
    for (size_t column = 0; first < bench->point_count; column++) {
        const struct bench_point *points = bench->points + first;
        CLEANUP(free_ptr)
        char *heading = xasprintf("%u block%s", points->blocks, points->blocks == 1 ? "" : "s");
        struct svg_panel panel = {.left = LEFT + (double)column * COLUMN,
                                  .top = TOP,
                                  .width = PANEL,
                                  .height = HEIGHT - TOP - 70,
                                  .title = heading,
                                  .x_label = "threads of a block",
                                  .y_label = column ? NULL : "%",
                                  .y_high = 100};
        size_t count = 0;
        char **threads;

        while (first + count < bench->point_count && points[count].blocks == points->blocks)
            count++;
        threads = xcalloc(count, sizeof *threads);
        for (size_t i = 0; i < count; i++)
            threads[i] = xasprintf("%u", points[i].threads);
        panel.x_names = (const char *const *)threads;
        panel.x_name_count = count;
        panel.x_high = (double)count;
        svg_axes(svg, &panel);
        for (size_t i = 0; i < count; i++) {
            for (size_t m = 0; m < array_size(shown); m++) {
                double value = points[i].metrics[shown[m].metric] * 100;
                double x = (double)i + 0.1 + 0.8 * (double)m / array_size(shown);
                CLEANUP(free_ptr) char *tip = xasprintf("%s %.1f%%", shown[m].title, value);
                if (value >= 0)
                    svg_box(svg, &panel, x, 0, x + 0.75 / array_size(shown), fmin(value, 100), svg_colour(m), tip);
            }
            free(threads[i]);
        }
        free(threads);
        first += count;
    }
    return svg_write(svg, path, err);
}
