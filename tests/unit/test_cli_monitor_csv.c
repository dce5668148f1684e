/* The CSV of `carma monitor` (tests/golden/monitor.csv): an unknown value is empty, never 0. GOLDEN=write makes it. */
#include "unit.h"

#include "cli/gpus/monitor_csv.h"

#define AT_NS (INT64_C(1700000000) * NS_PER_SEC + 7 * NS_PER_MS)

static void measure(struct gpu_reading *gpu, uint32_t metric, uint32_t source, int64_t value)
{
    gpu->metrics[metric] = (struct gpu_measure){.source = source, .value = value, .at_ns = AT_NS - 250 * NS_PER_MS};
}

static struct gpu_reading *add(struct gpu_node_reading *reading, const char *uuid, uint32_t kind)
{
    struct gpu_reading *gpu = &reading->gpus[reading->count++];

    strcpy(gpu->uuid, uuid);
    gpu->kind = kind;
    return gpu;
}

TEST(is_as_written_down)
{
    CLEANUP(free_ptr) struct gpu_node_reading *reading = xcalloc(1, sizeof *reading);
    CLEANUP(strbuf_release) struct strbuf out = {0};

    reading->at_ns = AT_NS;
    struct gpu_reading *gpu = add(reading, "GPU-everything", GPU_WHOLE);
    gpu->valid = GPU_HAS_MEMORY | GPU_HAS_PROCESSES | GPU_HAS_UTILIZATION | GPU_HAS_POWER | GPU_HAS_ENERGY;
    measure(gpu, GPU_SM_ACTIVITY, GPU_SOURCE_GPM, 812);
    measure(gpu, GPU_SM_OCCUPANCY, GPU_SOURCE_GPM, 0); /* measured, and nothing */
    measure(gpu, GPU_DRAM_ACTIVITY, GPU_SOURCE_GPM, 455);
    measure(gpu, GPU_TENSOR_ACTIVITY, GPU_SOURCE_GPM, 7);
    measure(gpu, GPU_GRAPHICS_ACTIVITY, GPU_SOURCE_GPM, 1000);
    measure(gpu, GPU_PCIE_TX, GPU_SOURCE_GPM, 123456789);
    measure(gpu, GPU_PCIE_RX, GPU_SOURCE_GPM, 0);
    gpu->utilization_permille = 990;
    gpu->used_bytes = 12 * GIB;
    gpu->total_bytes = 40 * GIB;
    gpu->power_mw = 251050;
    gpu->energy_mj = INT64_C(123456789012);
    gpu->process_count = 2;
    gpu = add(reading, "GPU-coarse", GPU_WHOLE);
    gpu->index = 1;
    gpu->valid = GPU_HAS_UTILIZATION;
    gpu->utilization_permille = 300;
    measure(gpu, GPU_SM_ACTIVITY, GPU_SOURCE_UTILIZATION, 300);
    gpu->xid = 31;
    gpu = add(reading, "GPU-lost", GPU_WHOLE);
    gpu->index = 2;
    gpu->error = 15;
    gpu = add(reading, "GPU-parent", GPU_PARTITIONED);
    gpu->index = 3;
    gpu = add(reading, "MIG-part", GPU_INSTANCE);
    gpu->index = 3;
    measure(gpu, GPU_DRAM_ACTIVITY, GPU_SOURCE_DCGM, 50);
    monitor_csv_header(&out);
    monitor_csv_rows(reading, &out);
    expect_file(GOLDEN_CSV, out.text);
}
