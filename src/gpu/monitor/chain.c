#include "gpu/monitor/chain.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/monitor/stuck.h"

struct link {
    struct gpu_chain_link link;
    bool open;
    void *state;        /* while open */
    int64_t tried_ns;   /* node time of the last attempt; -1: never */
    struct error error; /* why that failed */
};

struct gpu_chain {
    const struct gpu_backend *backend;
    void *state;
    int64_t period_ns;
    struct link links[GPU_CHAIN_LINKS];
    size_t link_count;
    struct gpu_stuck stuck;
    /* Node time of the first look of those in a row that lacked a metric; 0: the last look had it. */
    int64_t backend_lacks_ns[GPU_MAX_DEVICES][GPU_METRIC_COUNT];
    int64_t all_lack_ns[GPU_MAX_DEVICES]; /* SM activity, after the sources */
};

int gpu_chain_open(const struct gpu_backend *backend, const struct gpu_backend_options *options,
                   const struct gpu_chain_link *links, int64_t period_ns, struct gpu_chain **chain, struct error *err)
{
    struct gpu_chain *made = xcalloc(1, sizeof *made);
    int rc = backend->open(options, &made->state, err);

    if (rc < 0) {
        free(made);
        return rc;
    }
    made->backend = backend;
    made->period_ns = period_ns;
    for (; links->source; links++) {
        assert(made->link_count < GPU_CHAIN_LINKS);
        made->links[made->link_count++] = (struct link){.link = *links, .tried_ns = -1};
    }
    *chain = made;
    return 0;
}

/* An impossible value is left out: the daemon would refuse the frame. */
static void drop_impossible(struct gpu_node_reading *reading)
{
    for (uint32_t i = 0; i < reading->count; i++)
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
            if (!gpu_measure_plausible(&reading->gpus[i].metrics[metric], metric))
                reading->gpus[i].metrics[metric] = (struct gpu_measure){0};
}

/* Notes whether something lacks a value at this look; whether it has lacked it for too long. */
static bool lacks(int64_t *since_ns, bool missing, int64_t now_ns)
{
    if (!missing)
        *since_ns = 0;
    else if (*since_ns == 0 || *since_ns > now_ns) /* the clock was set back */
        *since_ns = now_ns;
    return missing && now_ns - *since_ns >= GPU_CHAIN_TIMEOUT_NS;
}

/* Whether a job could run on it and be measured. */
static bool measurable(const struct gpu_reading *gpu)
{
    return gpu->error == 0 && gpu->uuid[0] && gpu->kind != GPU_PARTITIONED;
}

static bool backend_lacks_something(struct gpu_chain *chain, const struct gpu_node_reading *reading)
{
    bool something = false;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
            something |= lacks(&chain->backend_lacks_ns[i][metric],
                               measurable(gpu) && gpu->metrics[metric].source == GPU_SOURCE_NONE, reading->at_ns);
    }
    return something;
}

/* Whether the source is open, at the latest now. */
static bool open_link(struct gpu_chain *chain, struct link *link, int64_t now_ns)
{
    bool due = link->tried_ns < 0 || now_ns < link->tried_ns || now_ns - link->tried_ns >= GPU_CHAIN_RETRY_NS;

    if (!link->open && due) {
        link->tried_ns = now_ns;
        link->open = link->link.source->open(link->link.library, chain->period_ns, &link->state, &link->error) == 0;
    }
    return link->open;
}

/* Puts utilisation in the place of SM activity, where there is one. It is never less, so with it a GPU is left alone
 * rather than overloaded. Returns the message about it, or NULL. */
static const char *stand_in(struct gpu_chain *chain, struct gpu_node_reading *reading)
{
    bool missed = false, stood_in = false;

    for (uint32_t i = 0; i < reading->count; i++) {
        struct gpu_reading *gpu = &reading->gpus[i];
        struct gpu_measure *sm = &gpu->metrics[GPU_SM_ACTIVITY];
        if (!lacks(&chain->all_lack_ns[i], measurable(gpu) && sm->source == GPU_SOURCE_NONE, reading->at_ns))
            continue;
        if (gpu->kind != GPU_WHOLE || !(gpu->valid & GPU_HAS_UTILIZATION)) {
            missed = true;
            continue;
        }
        stood_in = true;
        *sm = (struct gpu_measure){
            .source = GPU_SOURCE_UTILIZATION, .value = gpu->utilization_permille, .at_ns = reading->at_ns};
    }
    if (missed)
        return "SM activity is not measured";
    return stood_in ? "SM activity is not measured, utilisation stands in" : NULL;
}

static bool lacks_still(const struct gpu_node_reading *reading)
{
    for (uint32_t i = 0; i < reading->count; i++)
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
            if (measurable(&reading->gpus[i]) && reading->gpus[i].metrics[metric].source == GPU_SOURCE_NONE)
                return true;
    return false;
}

/* One line on unmeasured metrics and, where a source that could help cannot be opened, why. */
static void explain(const struct gpu_chain *chain, const char *what, struct gpu_node_reading *reading)
{
    const struct link *closed = NULL;

    if (reading->limits[0]) /* the backend or a source said it better */
        return;
    for (size_t i = 0; i < chain->link_count && !closed; i++)
        closed = chain->links[i].open ? NULL : &chain->links[i];
    if (closed)
        snprintf(reading->limits, sizeof reading->limits, "%.56s: %.100s", what, closed->error.text);
    else
        snprintf(reading->limits, sizeof reading->limits, "%s", what);
}

int gpu_chain_read(struct gpu_chain *chain, struct gpu_node_reading *reading, struct error *err)
{
    const char *missed;
    bool lacking, stuck;
    int rc = chain->backend->read(chain->state, reading, err);

    if (rc < 0)
        return rc;
    drop_impossible(reading);
    stuck = gpu_stuck_drop(&chain->stuck, reading);
    lacking = backend_lacks_something(chain, reading);
    for (size_t i = 0; i < chain->link_count && lacking; i++) {
        if (!open_link(chain, &chain->links[i], reading->at_ns))
            continue;
        chain->links[i].link.source->read(chain->links[i].state, reading);
        drop_impossible(reading);
        stuck |= gpu_stuck_drop(&chain->stuck, reading);
    }
    missed = stand_in(chain, reading);
    if (stuck)
        explain(chain, "zeros since an Xid are not trusted", reading);
    else if (missed)
        explain(chain, missed, reading);
    else if (lacking && lacks_still(reading))
        explain(chain, "not all activity is measured", reading);
    return 0;
}

void gpu_chain_close(struct gpu_chain *chain)
{
    if (!chain)
        return;
    for (size_t i = 0; i < chain->link_count; i++)
        if (chain->links[i].open)
            chain->links[i].link.source->close(chain->links[i].state);
    chain->backend->close(chain->state);
    free(chain);
}
