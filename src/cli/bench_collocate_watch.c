/* What the GPU is like while jobs run on it, from carma-monitor's readings. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/bench_collocate.h"
#include "gpu/monitor.h"

#define PERIOD_NS         (NS_PER_SEC / 2) /* node time */
#define PERIOD_WALL_NS    (20 * NS_PER_MS) /* but no shorter than this */
#define FIRST_PATIENCE_NS (60 * NS_PER_SEC)
#define PATIENCE_NS       (5 * NS_PER_SEC)

static double share(uint32_t metric, int64_t value)
{
    return metric == GPU_PCIE_TX || metric == GPU_PCIE_RX ? (double)value : (double)value / 1000;
}

/* The GPU's own value, or the mean of the instances' where it has none. */
static uint32_t metric_now(const struct collocate_watch *watch, const struct gpu_reading *gpu, uint32_t metric,
                           double *value)
{
    uint32_t source = GPU_SOURCE_NONE;
    size_t count = 0;

    if (gpu->metrics[metric].source != GPU_SOURCE_NONE) {
        *value = share(metric, gpu->metrics[metric].value);
        return gpu->metrics[metric].source;
    }
    *value = 0;
    for (size_t i = 0; i < watch->instance_count; i++) {
        const struct gpu_reading *instance = collocate_watch_find(watch, watch->instances[i]);
        if (instance && instance->metrics[metric].source != GPU_SOURCE_NONE) {
            source = instance->metrics[metric].source;
            *value += share(metric, instance->metrics[metric].value);
            count++;
        }
    }
    if (count)
        *value /= (double)count;
    return source;
}

static void note_energy(struct collocate_watch *watch, const struct gpu_reading *gpu, int64_t at_ns)
{
    if (gpu->energy_mj < watch->energy_last_mj)
        watch->energy_first_ns = 0; /* the counter began anew, with the driver */
    if (!watch->energy_first_ns) {
        watch->energy_first_mj = gpu->energy_mj;
        watch->energy_first_ns = at_ns;
    }
    watch->energy_last_mj = gpu->energy_mj;
    watch->energy_last_ns = at_ns;
}

static void measure(struct collocate_watch *watch)
{
    const struct gpu_reading *gpu = collocate_watch_find(watch, watch->gpu);
    int64_t at_ns = watch->latest->at_ns;
    double weight_ns = (double)(at_ns - watch->last_ns);

    if (!gpu || weight_ns <= 0)
        return;
    watch->last_ns = at_ns;
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        double value;
        uint32_t source = metric_now(watch, gpu, metric, &value);
        if (source == GPU_SOURCE_NONE)
            continue;
        watch->figures.sources[metric] = source;
        watch->weighted[metric] += value * weight_ns;
        watch->weight_ns[metric] += weight_ns;
    }
    if (gpu->valid & GPU_HAS_POWER) {
        watch->power_weighted += (double)gpu->power_mw / 1000 * weight_ns;
        watch->power_weight_ns += weight_ns;
    }
    if (gpu->valid & GPU_HAS_ENERGY)
        note_energy(watch, gpu, at_ns);
    if (gpu->valid & GPU_HAS_MEMORY && gpu->used_bytes > watch->figures.memory_peak_bytes)
        watch->figures.memory_peak_bytes = gpu->used_bytes;
    for (uint32_t i = 0; i < gpu->process_count && i < GPU_MAX_PROCESSES; i++)
        watch->figures.mps_seen |= gpu->processes[i].mps == 1;
}

static void on_reading(void *user, const struct gpu_node_reading *reading)
{
    struct collocate_watch *watch = user;

    *watch->latest = *reading;
    watch->problem[0] = '\0';
    watch->readings++;
    if (watch->measuring)
        measure(watch);
}

static void on_problem(void *user, const char *text)
{
    struct collocate_watch *watch = user;

    snprintf(watch->problem, sizeof watch->problem, "%s", text);
}

const struct gpu_reading *collocate_watch_find(const struct collocate_watch *watch, const char *uuid)
{
    for (uint32_t i = 0; i < watch->latest->count; i++) {
        if (strcmp(watch->latest->gpus[i].uuid, uuid) == 0)
            return &watch->latest->gpus[i];
    }
    return NULL;
}

static void on_timer(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop until `readings` have come, a problem is told where `problems` counts, or the time is over. */
static bool wait_readings(struct collocate_watch *watch, uint64_t readings, bool problems, int64_t patience_ns)
{
    uv_timer_t timer;
    bool over = false;

    uv_timer_init(watch->loop, &timer);
    timer.data = &over;
    uv_timer_start(&timer, on_timer, (uint64_t)(patience_ns / NS_PER_MS), 0);
    while (!over && watch->readings < readings && !(problems && *watch->problem))
        uv_run(watch->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(watch->loop, UV_RUN_NOWAIT);
    return watch->readings >= readings;
}

bool collocate_watch_fresh(struct collocate_watch *watch)
{
    /* The next one may have been taken before now. */
    return wait_readings(watch, watch->readings + 2, false, PATIENCE_NS);
}

int collocate_watch_open(struct collocate_watch *watch, uv_loop_t *loop, const char *library, struct error *err)
{
    int64_t least_ns = (int64_t)((double)PERIOD_WALL_NS * nodetime_scale());
    struct gpu_monitor_options options = {
        .library = library,
        .period_ns = PERIOD_NS > least_ns ? PERIOD_NS : least_ns,
        .on_reading = on_reading,
        .on_problem = on_problem,
        .user = watch,
    };

    *watch = (struct collocate_watch){.loop = loop};
    watch->latest = xcalloc(1, sizeof *watch->latest);
    watch->monitor = gpu_monitor_new(loop, &options);
    if (wait_readings(watch, 2, true, FIRST_PATIENCE_NS))
        return 0;
    return error_set(err, ENODEV, "no GPU can be read: %s", *watch->problem ? watch->problem : "no reading comes");
}

void collocate_watch_close(struct collocate_watch *watch)
{
    gpu_monitor_free(watch->monitor);
    watch->monitor = NULL;
    free_ptr(&watch->latest);
}

void collocate_watch_begin(struct collocate_watch *watch, const char *gpu, const char (*instances)[GPU_UUID_SIZE],
                           size_t instance_count)
{
    const struct gpu_reading *now = collocate_watch_find(watch, gpu);

    watch->gpu = gpu;
    watch->instances = instances;
    watch->instance_count = instances ? instance_count : 0;
    watch->begun_ns = watch->last_ns = nodetime_now_ns();
    memset(watch->weighted, 0, sizeof watch->weighted);
    memset(watch->weight_ns, 0, sizeof watch->weight_ns);
    watch->power_weighted = watch->power_weight_ns = 0;
    watch->energy_first_mj = watch->energy_last_mj = watch->energy_first_ns = watch->energy_last_ns = 0;
    watch->figures = (struct collocate_figures){.memory_peak_bytes = -1, .memory_before_bytes = -1};
    if (now && now->valid & GPU_HAS_MEMORY)
        watch->figures.memory_before_bytes = now->used_bytes;
    watch->measuring = true;
}

void collocate_watch_end(struct collocate_watch *watch, int64_t total_ns, struct collocate_figures *figures)
{
    watch->measuring = false;
    *figures = watch->figures;
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        if (watch->weight_ns[metric] > 0)
            figures->metrics[metric] = watch->weighted[metric] / watch->weight_ns[metric];
    }
    figures->power_w = watch->power_weight_ns > 0 ? watch->power_weighted / watch->power_weight_ns : -1;
    if (watch->energy_last_ns > watch->energy_first_ns) {
        figures->power_w = (double)(watch->energy_last_mj - watch->energy_first_mj) / 1000 /
                           ((double)(watch->energy_last_ns - watch->energy_first_ns) / 1e9);
    }
    figures->energy_j = figures->power_w < 0 ? -1 : figures->power_w * (double)total_ns / 1e9;
}
