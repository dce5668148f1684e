/* What is said of the GPUs in the log, once: faults, metrics that come from elsewhere than before, jobs that hold a GPU
 * without using it. */
#include <inttypes.h>
#include <string.h>

#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/node_internal.h"

/* Readings for which a metric must have come from a source before that is news: the first look has no interval behind it,
 * and a value that is missing once is no fault. */
#define STEADY_READINGS 10

/* ---- A GPU ---- */

static char *name_of(const struct node_gpu *gpu)
{
    return gpu->number == NODE_NO_NUMBER ? xasprintf("GPU %s", gpu->uuid)
                                         : xasprintf("GPU %" PRIu32 " (%s)", gpu->number, gpu->uuid);
}

void node_report_xid(const struct node *node, struct node_gpu *gpu)
{
    const struct gpu_reading *reading = &gpu->reading;
    CLEANUP(free_ptr) char *name = name_of(gpu);
    CLEANUP(free_ptr) char *jobs = NULL;

    if (reading->xid == 0 || reading->xid_at_ns <= gpu->told.xid_at_ns)
        return;
    gpu->told.xid_at_ns = reading->xid_at_ns;
    jobs = node_jobs_on(node, gpu);
    daemon_log("%s: the driver reports Xid %" PRIu32 "; %s%s", name, reading->xid,
               *jobs ? "there were the jobs " : "no job was there", jobs);
}

static void report_index(struct node_gpu *gpu)
{
    CLEANUP(free_ptr) char *name = name_of(gpu);

    if (gpu->told.index_known && gpu->told.index != gpu->reading.index)
        daemon_log("%s is now NVML's index %" PRIu32 ", was %" PRIu32, name, gpu->reading.index, gpu->told.index);
    gpu->told.index_known = true;
    gpu->told.index = gpu->reading.index;
}

static void watch_sources(struct node_gpu *gpu)
{
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        uint32_t source = gpu->reading.metrics[metric].source;
        gpu->told.held[metric] = source == gpu->told.candidates[metric] ? gpu->told.held[metric] + 1 : 1;
        gpu->told.candidates[metric] = source;
    }
}

void node_report_gpu(struct node *node, struct node_gpu *gpu)
{
    report_index(gpu);
    watch_sources(gpu);
}

/* ---- Sources: one line for all GPUs that changed alike ---- */

static bool has_news(const struct node_gpu *gpu, uint32_t metric)
{
    return gpu->told.held[metric] >= STEADY_READINGS && gpu->told.candidates[metric] != gpu->told.sources[metric];
}

static void say_source(uint32_t metric, uint32_t before, uint32_t now, const char *gpus)
{
    bool first = before == GPU_SOURCE_COUNT;

    if (now == GPU_SOURCE_UTILIZATION)
        daemon_log("GPU %s: %s is NVML's utilisation%s: coarse, an upper bound", gpus, gpu_metric_name(metric),
                   first ? "" : " from now on");
    else if (now == GPU_SOURCE_NONE && !first)
        daemon_log("GPU %s: %s cannot be measured any more", gpus, gpu_metric_name(metric));
    else if (now != GPU_SOURCE_NONE && !first)
        daemon_log("GPU %s: %s is measured by %s now", gpus, gpu_metric_name(metric), gpu_source_name(now));
    else if (now == GPU_SOURCE_NONE && metric == GPU_SM_ACTIVITY)
        daemon_log("GPU %s: SM activity cannot be measured: jobs are placed without it", gpus);
}

static void report_metric(struct node *node, uint32_t metric)
{
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t before = node->gpus[i]->told.sources[metric], now = node->gpus[i]->told.candidates[metric];
        CLEANUP(strbuf_release) struct strbuf list = {0};
        if (!has_news(node->gpus[i], metric))
            continue;
        for (uint32_t k = i; k < node->count; k++) {
            struct node_gpu *gpu = node->gpus[k];
            if (!has_news(gpu, metric) || gpu->told.sources[metric] != before || gpu->told.candidates[metric] != now)
                continue;
            gpu->told.sources[metric] = now;
            strbuf_puts(&list, list.length ? ", " : "");
            if (gpu->number == NODE_NO_NUMBER)
                strbuf_puts(&list, gpu->uuid);
            else
                strbuf_printf(&list, "%" PRIu32, gpu->number);
        }
        say_source(metric, before, now, list.text);
    }
}

void node_report_reading(struct node *node, const struct gpu_node_reading *reading)
{
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        report_metric(node, metric);
    if (strcmp(reading->limits, node->limits) == 0)
        return;
    daemon_log("%s%s", *reading->limits ? "metrics: " : "metrics: nothing stands against measuring any more",
               reading->limits);
    memcpy(node->limits, reading->limits, sizeof node->limits);
}

/* ---- Jobs that hold a GPU without using it ---- */

/* Since when none of the job's GPUs has been busy, whoever else is there; -1: one of them cannot be measured now. */
static int64_t unused_since(const struct node *node, const struct job_view *view)
{
    int64_t since_ns = view->started_ns;

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct node_gpu *gpu = node_gpu_numbered(node, view->placements[i].gpu);
        if (!gpu || !gpu->there || gpu->reading.metrics[GPU_SM_ACTIVITY].source == GPU_SOURCE_NONE)
            return -1;
        if (gpu->active_ns > since_ns)
            since_ns = gpu->active_ns;
    }
    return since_ns;
}

static void judge(struct node *node, struct job_view *view, int64_t now_ns)
{
    int64_t since_ns = view->state == JOB_RUNNING ? unused_since(node, view) : -1;
    bool unused = now_ns - since_ns >= node->daemon->config.idle_report_ns;
    char text[UNITS_TEXT];

    if (since_ns < 0) /* what was known last still stands */
        return;
    if (unused && view->unused_since_ns < 0)
        daemon_log("job %" PRIu64 " of %s holds %" PRIu32 " GPU%s and has not used %s for %s", view->id, view->user,
                   view->placement_count, view->placement_count == 1 ? "" : "s",
                   view->placement_count == 1 ? "it" : "them", format_duration(now_ns - since_ns, text));
    view->unused_since_ns = unused ? since_ns : -1;
}

void node_report_unused(struct node *node)
{
    const struct core *core = node->daemon->core;
    int64_t now_ns = nodetime_now_ns();

    if (node->daemon->config.idle_report_ns == 0)
        return;
    for (uint32_t g = 0; g < core_gpu_count(core); g++) {
        const struct gpu *gpu = core_gpu(core, g);
        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            struct job_view *view = views_find(&node->daemon->views, gpu->residents[i]->id);
            if (view && view->placement_count && view->placements[0].gpu == g) /* once per job */
                judge(node, view, now_ns);
        }
    }
}
