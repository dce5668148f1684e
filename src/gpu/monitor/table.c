#include "gpu/monitor/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "gpu/frame.h"

#define CELL 32

static const char *permille_cell(const struct gpu_reading *gpu, uint32_t bit, int32_t permille, char cell[static CELL])
{
    if (!(gpu->valid & bit))
        return "-";
    snprintf(cell, CELL, "%d.%d%%", permille / 10, permille % 10);
    return cell;
}

/* Milliwatts as watts, millijoules as joules. */
static const char *milli_cell(const struct gpu_reading *gpu, uint32_t bit, int64_t value, const char *unit,
                              char cell[static CELL])
{
    if (!(gpu->valid & bit))
        return "-";
    snprintf(cell, CELL, "%" PRId64 " %s", value / 1000, unit);
    return cell;
}

/* One line: each metric that there is, with where it is from. */
static void format_metrics(const struct gpu_reading *gpu, struct strbuf *out)
{
    const char *before = "     ";

    for (uint32_t m = 0; m < GPU_METRIC_COUNT; m++) {
        const struct gpu_measure *measure = &gpu->metrics[m];
        char size[UNITS_TEXT];
        if (measure->source == GPU_SOURCE_NONE)
            continue;
        strbuf_printf(out, "%s%s ", before, gpu_metric_name(m));
        if (m == GPU_PCIE_TX || m == GPU_PCIE_RX)
            strbuf_printf(out, "%s/s", format_bytes(measure->value, size));
        else
            strbuf_printf(out, "%" PRId64 ".%" PRId64 "%%", measure->value / 10, measure->value % 10);
        strbuf_printf(out, " (%s)", gpu_source_name(measure->source));
        before = ", ";
    }
    if (before[0] == ',')
        strbuf_puts(out, "\n");
}

static void format_processes(const struct gpu_reading *gpu, struct strbuf *out)
{
    uint32_t listed = gpu_reading_listed(gpu);
    char size[UNITS_TEXT];

    if (!(gpu->valid & GPU_HAS_PROCESSES))
        strbuf_puts(out, "     processes: not told by the driver\n");
    for (uint32_t i = 0; i < listed; i++) {
        const struct gpu_process *process = &gpu->processes[i];
        strbuf_printf(out, "     pid %" PRId32 "%s: %s\n", process->pid, process->mps ? " (MPS)" : "",
                      process->used_bytes < 0 ? "memory not told by the driver"
                                              : format_bytes(process->used_bytes, size));
    }
    if (gpu->process_count > listed)
        strbuf_printf(out, "     and %" PRIu32 " more\n", gpu->process_count - listed);
}

void gpu_table_format(const struct gpu_node_reading *reading, struct strbuf *out)
{
    strbuf_printf(out, "%-4s %-44s %-34s %10s %10s %8s %8s %14s\n", "GPU", "UUID", "NAME", "USED", "USABLE", "UTIL",
                  "POWER", "ENERGY");
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        bool memory = gpu->valid & GPU_HAS_MEMORY;
        char index[CELL], used[UNITS_TEXT], total[UNITS_TEXT], utilization[CELL], power[CELL], energy[CELL];

        snprintf(index, sizeof index, gpu->kind == GPU_INSTANCE ? "%" PRIu32 "/%" PRIu32 : "%" PRIu32, gpu->index,
                 gpu->gpu_instance);
        strbuf_printf(out, "%-4s %-44s %-34s ", index, gpu->uuid[0] ? gpu->uuid : "-", gpu->name[0] ? gpu->name : "-");
        if (gpu->error) {
            strbuf_printf(out, "failed: NVML error %" PRId32 "\n", gpu->error);
            continue;
        }
        strbuf_printf(out, "%10s %10s %8s %8s %14s\n", memory ? format_bytes(gpu->used_bytes, used) : "-",
                      memory ? format_bytes(gpu->total_bytes, total) : "-",
                      permille_cell(gpu, GPU_HAS_UTILIZATION, gpu->utilization_permille, utilization),
                      milli_cell(gpu, GPU_HAS_POWER, gpu->power_mw, "W", power),
                      milli_cell(gpu, GPU_HAS_ENERGY, gpu->energy_mj, "J", energy));
        if (gpu->kind == GPU_PARTITIONED)
            strbuf_puts(out, "     in MIG mode\n");
        if (gpu->xid_count)
            strbuf_printf(out, "     Xid %" PRIu32 ", the latest of %" PRIu32 "\n", gpu->xid, gpu->xid_count);
        format_metrics(gpu, out);
        format_processes(gpu, out);
    }
    if (reading->count == 0)
        strbuf_puts(out, "no GPUs\n");
    if (reading->limits[0])
        strbuf_printf(out, "limits: %s\n", reading->limits);
}
