#include "gpu/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "gpu/frame.h"

#define CELL 32

static const char *activity_cell(const struct gpu_measure *measure, char cell[static CELL])
{
    if (measure->source == GPU_SOURCE_NONE)
        return "-";
    snprintf(cell, CELL, "%" PRId64 ".%" PRId64 "%%", measure->value / 10, measure->value % 10);
    return cell;
}

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
    strbuf_printf(out, "%-4s %-44s %-26s %10s %10s %8s %8s %8s %14s\n", "GPU", "UUID", "NAME", "USED", "USABLE", "SM",
                  "UTIL", "POWER", "ENERGY");
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        bool memory = gpu->valid & GPU_HAS_MEMORY;
        char used[UNITS_TEXT], total[UNITS_TEXT], sm[CELL], utilization[CELL], power[CELL], energy[CELL];

        strbuf_printf(out, "%-4" PRIu32 " %-44s %-26s ", gpu->index, gpu->uuid[0] ? gpu->uuid : "-",
                      gpu->name[0] ? gpu->name : "-");
        if (gpu->error) {
            strbuf_printf(out, "failed: NVML error %" PRId32 "\n", gpu->error);
            continue;
        }
        strbuf_printf(out, "%10s %10s %8s %8s %8s %14s\n", memory ? format_bytes(gpu->used_bytes, used) : "-",
                      memory ? format_bytes(gpu->total_bytes, total) : "-",
                      activity_cell(&gpu->metrics[GPU_SM_ACTIVITY], sm),
                      permille_cell(gpu, GPU_HAS_UTILIZATION, gpu->utilization_permille, utilization),
                      milli_cell(gpu, GPU_HAS_POWER, gpu->power_mw, "W", power),
                      milli_cell(gpu, GPU_HAS_ENERGY, gpu->energy_mj, "J", energy));
        format_processes(gpu, out);
    }
    if (reading->count == 0)
        strbuf_puts(out, "no GPUs\n");
}
