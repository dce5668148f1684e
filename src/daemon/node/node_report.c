/* Reports about GPUs in the log, once: faults, metrics from another source than before, jobs that hold a GPU without
 * using it. node.c calls node_report_* as readings come; each keeps what it has said last. Add another there. */
#include <inttypes.h>
#include <string.h>

#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/log.h"
#include "daemon/engine/engine.h"
#include "daemon/node/node_internal.h"

/* Readings for which a metric must have come from a source before that is news. The first look has no interval behind
 * it, and a single missing value is not a fault. */
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

void node_report_order(struct node *node)
{
    CLEANUP(free_ptr) char *text = node->told_of_order ? NULL : node_order_text(node);

    node->told_of_order = true;
    if (text)
        daemon_log("%s", text);
}

void node_report_share(struct node *node)
{
    const struct core *core = node->daemon->core;
    const struct share_setting *share = &node->daemon->config.share;

    if (node->told_of_share)
        return;
    node->told_of_share = true;
    for (size_t i = 0; i < share->count; i++) {
        const struct share_override *override = &share->overrides[i];
        uint32_t gpu = 0, count = core_gpu_count(core);
        while (gpu < count && !share_override_names(override, gpu, core_gpu(core, gpu)->uuid))
            gpu++;
        if (gpu == count)
            daemon_log("share: %s=%s is for no GPU of this machine: `carma gpus` has their numbers and UUIDs",
                       override->which, share_mode_name(override->mode));
    }
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

/* "sm_occupancy, dram_activity" and so on have come from `before` on GPUs "0, 1", and come from `now`. */
struct source_news {
    struct strbuf metrics;
    struct strbuf gpus;
    uint32_t before;
    uint32_t now;
};

static void say_source(const struct source_news *news)
{
    bool first = news->before == GPU_SOURCE_COUNT;

    if (!news->metrics.length)
        return;
    if (news->now == GPU_SOURCE_UTILIZATION)
        daemon_log("GPU %s: %s is NVML's utilisation%s: coarse, an upper bound", news->gpus.text, news->metrics.text,
                   first ? "" : " from now on");
    else if (news->now == GPU_SOURCE_NONE && !first)
        daemon_log("GPU %s: cannot be measured any more: %s", news->gpus.text, news->metrics.text);
    else if (news->now != GPU_SOURCE_NONE && !first)
        daemon_log("GPU %s: measured by %s now: %s", news->gpus.text, gpu_source_name(news->now), news->metrics.text);
}

static void take_gpus(struct node *node, uint32_t metric, struct source_news *news)
{
    for (uint32_t i = 0; i < node->count; i++) {
        struct node_gpu *gpu = node->gpus[i];
        if (!has_news(gpu, metric) || gpu->told.sources[metric] != news->before ||
            gpu->told.candidates[metric] != news->now)
            continue;
        gpu->told.sources[metric] = news->now;
        strbuf_puts(&news->gpus, news->gpus.length ? ", " : "");
        if (gpu->number == NODE_NO_NUMBER)
            strbuf_puts(&news->gpus, gpu->uuid);
        else
            strbuf_printf(&news->gpus, "%" PRIu32, gpu->number);
    }
}

/* Reports the pending message and takes `next` in its place, or adds its metric where all else is the same. */
static void add_news(struct source_news *pending, struct source_news *next, uint32_t metric)
{
    bool same = pending->metrics.length && pending->before == next->before && pending->now == next->now &&
                strcmp(pending->gpus.text, next->gpus.text) == 0;

    if (!same) {
        say_source(pending);
        strbuf_clear(&pending->metrics);
        strbuf_clear(&pending->gpus);
        strbuf_puts(&pending->gpus, next->gpus.text);
        pending->before = next->before;
        pending->now = next->now;
    }
    strbuf_printf(&pending->metrics, "%s%s", pending->metrics.length ? ", " : "", gpu_metric_name(metric));
}

static void report_sources(struct node *node)
{
    struct source_news pending = {0};

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        for (uint32_t i = 0; i < node->count; i++) {
            struct source_news next = {.before = node->gpus[i]->told.sources[metric],
                                       .now = node->gpus[i]->told.candidates[metric]};
            if (!has_news(node->gpus[i], metric))
                continue;
            take_gpus(node, metric, &next);
            add_news(&pending, &next, metric);
            strbuf_release(&next.gpus);
        }
    say_source(&pending);
    strbuf_release(&pending.metrics);
    strbuf_release(&pending.gpus);
}

static void report_limits(struct node *node, const char *limits)
{
    node->limits_held = strcmp(limits, node->limits_candidate) == 0 ? node->limits_held + 1 : 1;
    memcpy(node->limits_candidate, limits, sizeof node->limits_candidate);
    if (node->limits_held != STEADY_READINGS || strcmp(limits, node->limits) == 0)
        return;
    daemon_log("metrics: %s", *limits ? limits : "nothing stands against measuring any more");
    memcpy(node->limits, limits, sizeof node->limits);
}

void node_report_reading(struct node *node, const struct gpu_node_reading *reading)
{
    report_sources(node);
    report_limits(node, reading->limits);
}

/* ---- Jobs that hold a GPU without using it ---- */

/* Whether it was busy at its last reading, maybe by the job. Of a job that has no process there, all is known; not
 * under MPS: some drivers list its server alone. */
static bool may_be_used_by(const struct node_gpu *gpu, const struct job *job)
{
    return gpu->active_ns == gpu->at_ns &&
           (job->share == SHARE_MPS || *gpu->attribution.why || attribution_of(&gpu->attribution, job->id) != 0);
}

/* Keeps when the job may last have used one of its GPUs. False: one of them cannot be measured now. */
static bool follow_use(const struct node *node, struct job_view *view, const struct job *job, int64_t now_ns)
{
    bool known = true;

    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct node_gpu *gpu = node_gpu_numbered(node, job->placements[i].gpu);
        if (!gpu || !gpu->there || core_gpu(node->daemon->core, job->placements[i].gpu)->lost ||
            gpu->reading.metrics[GPU_SM_ACTIVITY].source == GPU_SOURCE_NONE)
            known = false;
        else if (may_be_used_by(gpu, job))
            job_view_run(view)->used_ns = gpu->active_ns;
    }
    if (!view->run->used_ns)
        job_view_run(view)->used_ns = now_ns;
    if (!known)
        job_view_run(view)->unmeasured_ns = now_ns;
    return known;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Since when the running job has neither used its GPUs nor got on, as far as that was measured. */
static int64_t unused_since(const struct job_view *view, const struct job *job)
{
    return later(later(job->run->resumed_ns, view->run->started_ns),
                 later(view->run->used_ns, view->run->progress ? view->run->progress->count.at_ns : 0));
}

static void report(struct node *node, struct job_view *view, int64_t since_ns, int64_t now_ns)
{
    int64_t report_ns = node->daemon->config.idle_report_ns;
    bool unused = now_ns - since_ns >= report_ns;
    char text[UNITS_TEXT];

    if (report_ns == 0)
        return;
    if (unused && view->run->unused_since_ns < 0)
        daemon_log("job %" PRIu64 " of %s holds %" PRIu32 " GPU%s and has not used %s for %s", view->id,
                   job_view_user(view), view->placement_count, view->placement_count == 1 ? "" : "s",
                   view->placement_count == 1 ? "it" : "them", format_duration(now_ns - since_ns, text));
    if (unused != (view->run->unused_since_ns >= 0))
        views_touch(&node->daemon->views, view);
    job_view_run(view)->unused_since_ns = unused ? since_ns : -1;
}

/* The core warns and ends it by its own clock, so it is told at once where the job uses its GPUs again, or where nobody
 * can tell. A pause that is short for its limit is no news. */
#define NEWS_PART 4

static void tell_core(struct node *node, const struct job *job, int64_t since_ns, int64_t now_ns)
{
    int64_t limit_ns = job->wants->idle_limit_ns;
    bool long_enough = since_ns >= 0 && now_ns - since_ns >= limit_ns / NEWS_PART;
    struct record input = {
        .type = RECORD_UNUSED, .at_ns = now_ns, .job = job->id, .unused = {.since_ns = long_enough ? since_ns : 0}};

    if (limit_ns && input.unused.since_ns != job->run->unused_since_ns)
        engine_input(node->daemon->engine, &input, NULL);
}

void node_report_unused(struct node *node)
{
    const struct core *core = node->daemon->core;
    int64_t now_ns = nodetime_now_ns();

    for (uint32_t g = 0; g < core_gpu_count(core); g++) {
        const struct gpu *gpu = core_gpu(core, g);
        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            const struct job *job = gpu->residents[i];
            struct job_view *view = views_find(&node->daemon->views, job->id);
            if (!view || job->state != JOB_RUNNING || job->placements[0].gpu != g) /* once per job */
                continue;
            if (follow_use(node, view, job, now_ns)) {
                report(node, view, unused_since(view, job), now_ns);
                tell_core(node, job, later(unused_since(view, job), view->run->unmeasured_ns), now_ns);
            } else { /* what was reported still stands; nobody is ended by what was not seen */
                tell_core(node, job, -1, now_ns);
            }
        }
    }
}
