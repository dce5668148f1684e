/* The report of carma bench monitor --kernel: JSON, a table. */
#include "base/memory.h"
#include "base/nodetime.h"
#include "bench/kernel.h"
#include "cli/show/table.h"

/* Those of Figure 3.1. */
static const enum gpu_metric shown[] = {GPU_GRAPHICS_ACTIVITY, GPU_SM_ACTIVITY, GPU_SM_OCCUPANCY};

json_t *bench_kernel_json(const struct bench_kernel *bench)
{
    json_t *points = json_array();

    for (size_t p = 0; p < bench->point_count; p++) {
        const struct bench_point *point = &bench->points[p];
        json_t *object =
            json_pack("{s:I, s:I}", "blocks", (json_int_t)point->blocks, "threads", (json_int_t)point->threads);
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
                     "simulated", bench_simulated(), "sms", (json_int_t)bench->gpu.sm_count, "time_scale",
                     nodetime_scale(), "point_s", (double)bench->point_ns / 1e9, "points", points);
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
            share_cell(table, point->metrics[shown[i]]);
        table_cell(table, STYLE_NONE, "%s", gpu_source_name(point->sources[GPU_SM_ACTIVITY]));
    }
    table_format(table, width, colour, out);
    table_free(table);
}
