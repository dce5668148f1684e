#include "cli/gpus/monitor_csv.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/units.h"

/* docs/formats/monitor-csv.md explains each column. */
static const char *const titles[] = {
    "time_s",
    "gpu",
    "uuid",
    "kind",
    "error",
    "sm_activity",
    "sm_activity_source",
    "sm_activity_age_s",
    "sm_occupancy",
    "dram_activity",
    "tensor_activity",
    "graphics_activity",
    "metrics_source",
    "pcie_tx_bytes_s",
    "pcie_rx_bytes_s",
    "utilization",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_w",
    "energy_j",
    "processes",
    "xid",
};

void monitor_csv_header(struct strbuf *out)
{
    for (size_t i = 0; i < array_size(titles); i++)
        strbuf_printf(out, "%s%s", i ? "," : "", titles[i]);
    strbuf_puts(out, "\n");
}

/* The next field: thousandths as a decimal number, a whole number, or nothing where it is not known. */
static void put_milli(struct strbuf *out, int64_t value, bool is_known)
{
    strbuf_puts(out, ",");
    if (is_known)
        strbuf_printf(out, "%" PRId64 ".%03d", value / 1000, (int)(value % 1000));
}

static void put_integer(struct strbuf *out, int64_t value, bool is_known)
{
    strbuf_puts(out, ",");
    if (is_known)
        strbuf_printf(out, "%" PRId64, value);
}

static bool is_known(const struct gpu_reading *gpu, uint32_t metric)
{
    return gpu->metrics[metric].source != GPU_SOURCE_NONE;
}

/* The first source among all metrics but SM activity, for which another may stand in. */
static const char *other_source(const struct gpu_reading *gpu)
{
    for (uint32_t metric = GPU_SM_ACTIVITY + 1; metric < GPU_METRIC_COUNT; metric++)
        if (is_known(gpu, metric))
            return gpu_source_name(gpu->metrics[metric].source);
    return gpu_source_name(GPU_SOURCE_NONE);
}

static void put_row(const struct gpu_reading *gpu, int64_t at_ns, struct strbuf *out)
{
    static const char *const kinds[GPU_KIND_COUNT] = {"whole", "partitioned", "instance"};
    static const uint32_t activities[] = {GPU_SM_OCCUPANCY, GPU_DRAM_ACTIVITY, GPU_TENSOR_ACTIVITY,
                                          GPU_GRAPHICS_ACTIVITY};
    const struct gpu_measure *sm = &gpu->metrics[GPU_SM_ACTIVITY];
    int64_t age_ns = at_ns > sm->at_ns ? at_ns - sm->at_ns : 0;

    strbuf_printf(out, "%" PRId64 ".%03d,%" PRIu32 ",%s,%s,%" PRId32, at_ns / NS_PER_SEC,
                  (int)(at_ns % NS_PER_SEC / NS_PER_MS), gpu->index, gpu->uuid,
                  gpu->kind < GPU_KIND_COUNT ? kinds[gpu->kind] : "", gpu->error);
    put_milli(out, sm->value, is_known(gpu, GPU_SM_ACTIVITY));
    strbuf_printf(out, ",%s", gpu_source_name(sm->source));
    put_milli(out, age_ns / NS_PER_MS, is_known(gpu, GPU_SM_ACTIVITY));
    for (size_t i = 0; i < array_size(activities); i++)
        put_milli(out, gpu->metrics[activities[i]].value, is_known(gpu, activities[i]));
    strbuf_printf(out, ",%s", other_source(gpu));
    put_integer(out, gpu->metrics[GPU_PCIE_TX].value, is_known(gpu, GPU_PCIE_TX));
    put_integer(out, gpu->metrics[GPU_PCIE_RX].value, is_known(gpu, GPU_PCIE_RX));
    put_milli(out, gpu->utilization_permille, gpu->valid & GPU_HAS_UTILIZATION);
    put_integer(out, gpu->used_bytes, gpu->valid & GPU_HAS_MEMORY);
    put_integer(out, gpu->total_bytes, gpu->valid & GPU_HAS_MEMORY);
    put_milli(out, gpu->power_mw, gpu->valid & GPU_HAS_POWER);
    put_milli(out, gpu->energy_mj, gpu->valid & GPU_HAS_ENERGY);
    put_integer(out, gpu->process_count, gpu->valid & GPU_HAS_PROCESSES);
    put_integer(out, gpu->xid, gpu->xid);
    strbuf_puts(out, "\n");
}

void monitor_csv_rows(const struct gpu_node_reading *reading, struct strbuf *out)
{
    for (uint32_t i = 0; i < reading->count; i++)
        put_row(&reading->gpus[i], reading->at_ns, out);
}
