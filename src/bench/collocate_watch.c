/* The GPU's state while jobs run on it, from carma-monitor's readings. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/collocate.h"
#include "gpu/monitor/monitor.h"

#define PERIOD_NS        (NS_PER_SEC / 2) /* node time */
#define PERIOD_WALL_NS   (20 * NS_PER_MS) /* but no shorter than this */
#define FIRST_TIMEOUT_NS (60 * NS_PER_SEC)
#define TIMEOUT_NS       (5 * NS_PER_SEC)

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

static void take_sample(struct collocate_watch *watch)
{
    const struct gpu_reading *gpu = collocate_watch_find(watch, watch->gpu);
    struct collocate_sample *sample;

    if (!gpu || watch->latest->at_ns <= watch->begun_ns)
        return;
    array_reserve(watch->samples, watch->sample_capacity, watch->sample_count + 1);
    sample = &watch->samples[watch->sample_count++];
    *sample = (struct collocate_sample){
        .at_ns = watch->latest->at_ns,
        .used_bytes = gpu->valid & GPU_HAS_MEMORY ? gpu->used_bytes : -1,
        .power_mw = gpu->valid & GPU_HAS_POWER ? gpu->power_mw : -1,
        .energy_mj = gpu->valid & GPU_HAS_ENERGY ? gpu->energy_mj : -1,
    };
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        sample->sources[metric] = metric_now(watch, gpu, metric, &sample->metrics[metric]);
    for (uint32_t i = 0; i < gpu->process_count && i < GPU_MAX_PROCESSES; i++)
        sample->mps_observed |= gpu->processes[i].mps == 1;
}

static void on_reading(void *user, const struct gpu_node_reading *reading)
{
    struct collocate_watch *watch = user;

    *watch->latest = *reading;
    watch->problem[0] = '\0';
    watch->readings++;
    if (watch->measuring)
        take_sample(watch);
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
static bool wait_readings(struct collocate_watch *watch, uint64_t readings, bool problems, int64_t timeout_ns)
{
    uv_timer_t timer;
    bool over = false;

    uv_timer_init(watch->loop, &timer);
    timer.data = &over;
    uv_timer_start(&timer, on_timer, (uint64_t)(timeout_ns / NS_PER_MS), 0);
    while (!over && watch->readings < readings && !(problems && *watch->problem))
        uv_run(watch->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(watch->loop, UV_RUN_NOWAIT);
    return watch->readings >= readings;
}

bool collocate_watch_fresh(struct collocate_watch *watch)
{
    /* The next one may have been taken before now. */
    return wait_readings(watch, watch->readings + 2, false, TIMEOUT_NS);
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
    if (wait_readings(watch, 2, true, FIRST_TIMEOUT_NS))
        return 0;
    return error_set(err, ENODEV, "no GPU can be read: %s", *watch->problem ? watch->problem : "no reading comes");
}

void collocate_watch_close(struct collocate_watch *watch)
{
    gpu_monitor_free(watch->monitor);
    watch->monitor = NULL;
    free_ptr(&watch->latest);
    free_ptr(&watch->samples);
}

void collocate_watch_begin(struct collocate_watch *watch, const char *gpu, const char (*instances)[GPU_UUID_SIZE],
                           size_t instance_count)
{
    const struct gpu_reading *now = collocate_watch_find(watch, gpu);

    watch->gpu = gpu;
    watch->instances = instances;
    watch->instance_count = instances ? instance_count : 0;
    watch->begun_ns = nodetime_now_ns();
    watch->before_bytes = now && now->valid & GPU_HAS_MEMORY ? now->used_bytes : -1;
    watch->sample_count = 0;
    watch->measuring = true;
}

/* ---- Figures ---- */

struct span {
    const struct collocate_sample *first;
    size_t count;
    int64_t from_ns; /* before the first */
};

static struct span samples_between(const struct collocate_watch *watch, int64_t from_ns, int64_t to_ns)
{
    struct span span = {.from_ns = from_ns};
    size_t low = 0, high;

    while (low < watch->sample_count && watch->samples[low].at_ns <= from_ns)
        low++;
    for (high = low; high < watch->sample_count && watch->samples[high].at_ns <= to_ns;)
        high++;
    span.first = watch->samples + low;
    span.count = high - low;
    return span;
}

/* How much time a sample stands for. */
static double weight_of(const struct span *span, size_t i)
{
    return (double)(span->first[i].at_ns - (i ? span->first[i - 1].at_ns : span->from_ns));
}

static double mean_metric(const struct span *span, uint32_t metric, uint32_t *source)
{
    double sum = 0, weights = 0;

    *source = GPU_SOURCE_NONE;
    for (size_t i = 0; i < span->count; i++) {
        const struct collocate_sample *sample = &span->first[i];
        if (sample->sources[metric] == GPU_SOURCE_NONE)
            continue;
        *source = sample->sources[metric];
        sum += sample->metrics[metric] * weight_of(span, i);
        weights += weight_of(span, i);
    }
    return weights > 0 ? sum / weights : 0;
}

/* By the energy counter between the first and the last sample. Where it began anew with the driver, or is not there, by
 * the mean of the power readings. -1: neither. */
static double mean_power_w(const struct span *span)
{
    const struct collocate_sample *first = span->first;
    const struct collocate_sample *last = first + (span->count ? span->count - 1 : 0);
    double sum = 0, weights = 0;

    if (span->count > 1 && first->energy_mj >= 0 && last->energy_mj >= first->energy_mj)
        return (double)(last->energy_mj - first->energy_mj) / 1e3 / ((double)(last->at_ns - first->at_ns) / 1e9);
    for (size_t i = 0; i < span->count; i++) {
        if (span->first[i].power_mw < 0)
            continue;
        sum += (double)span->first[i].power_mw / 1e3 * weight_of(span, i);
        weights += weight_of(span, i);
    }
    return weights > 0 ? sum / weights : -1;
}

void collocate_watch_end(struct collocate_watch *watch, int64_t from_ns, int64_t to_ns, int64_t total_ns,
                         struct collocate_figures *figures)
{
    struct span whole = samples_between(watch, watch->begun_ns, watch->begun_ns + total_ns);
    struct span training = samples_between(watch, from_ns, to_ns);
    double whole_power_w = mean_power_w(&whole);

    watch->measuring = false;
    if (training.count == 0)
        training = whole;
    *figures = (struct collocate_figures){
        .memory_peak_bytes = -1, .memory_before_bytes = watch->before_bytes, .power_w = mean_power_w(&training)};
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        figures->metrics[metric] = mean_metric(&training, metric, &figures->sources[metric]);
    for (size_t i = 0; i < whole.count; i++) {
        if (whole.first[i].used_bytes > figures->memory_peak_bytes)
            figures->memory_peak_bytes = whole.first[i].used_bytes;
        figures->mps_observed |= whole.first[i].mps_observed;
    }
    figures->energy_j = whole_power_w < 0 ? -1 : whole_power_w * (double)total_ns / 1e9;
}
