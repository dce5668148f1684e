/* Each job's GPU memory over time (memory_usage.h): as attributed with the last reading, else its reservation. Kept in
 * the store along with the energy (node_energy.c). */
#include <inttypes.h>

#include "daemon/node/node_internal.h"
#include "store/history.h"

struct held {
    int64_t bytes;
    int64_t measured_bytes;
};

static void add_held(const struct node *node, const struct job_view *view, uint32_t gpu, struct held *held)
{
    const struct node_gpu *entry = node_gpu_numbered(node, gpu);
    int64_t used_bytes =
        entry && entry->at_ns && !*entry->attribution.why ? attribution_of(&entry->attribution, view->id) : -1;

    if (used_bytes >= 0)
        history_add(&held->measured_bytes, used_bytes);
    history_add(&held->bytes, used_bytes >= 0 ? used_bytes : view->reserved_bytes);
}

static void add_strays(const struct node *node, const struct job_view *view, struct held *held)
{
    int64_t bytes = node_stray_bytes(node, view->id);

    history_add(&held->measured_bytes, bytes);
    history_add(&held->bytes, bytes);
}

void node_follow_memory(struct node *node, int64_t at_ns)
{
    const struct daemon *daemon = node->daemon;

    for (uint32_t g = 0; g < core_gpu_count(daemon->core); g++) {
        const struct gpu *gpu = core_gpu(daemon->core, g);

        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            const struct job *job = gpu->residents[i];
            struct job_view *view = job->placements[0].gpu == g ? views_find(&daemon->views, job->id) : NULL;
            struct held held = {0};

            for (uint32_t p = 0; view && p < job->placement_count; p++)
                add_held(node, view, job->placements[p].gpu, &held);
            if (view)
                add_strays(node, view, &held);
            if (view)
                memory_usage_set(&job_view_run(view)->held, at_ns, held.bytes, held.measured_bytes);
        }
    }
}

void node_store_memory(const struct node *node, struct store_batch *batch)
{
    const struct daemon *daemon = node->daemon;

    for (uint32_t g = 0; g < core_gpu_count(daemon->core); g++) {
        const struct gpu *gpu = core_gpu(daemon->core, g);

        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            const struct job *job = gpu->residents[i];
            const struct job_view *view = job->placements[0].gpu == g ? views_find(&daemon->views, job->id) : NULL;

            if (view && view->run->held.at_ns > 0)
                store_batch_held(batch, &(struct store_held){.job = view->id,
                                                             .at_ns = view->run->held.at_ns,
                                                             .bytes = view->run->held.bytes,
                                                             .measured_bytes = view->run->held.measured_bytes,
                                                             .mib_ms = view->run->held.mib_ms,
                                                             .measured_mib_ms = view->run->held.measured_mib_ms});
        }
    }
}

/* ---- After a restart ---- */

static int load_held(const struct store_held *stored, void *user)
{
    struct node *node = user;
    struct job_view *view = views_find(&node->daemon->views, stored->job);

    /* A later launch than this: the sums of earlier ones came with the view. */
    if (!view || view->run->held.at_ns <= 0 || stored->at_ns < view->run->held.at_ns ||
        stored->mib_ms < view->run->held.mib_ms)
        return 0;
    job_view_run(view)->held = (struct memory_usage){.at_ns = stored->at_ns,
                                                     .bytes = stored->bytes,
                                                     .measured_bytes = stored->measured_bytes,
                                                     .mib_ms = stored->mib_ms,
                                                     .measured_mib_ms = stored->measured_mib_ms};
    return 0;
}

/* Until the first reading, a job of which the store says nothing held the most that was observed of it. */
int node_load_memory(struct node *node, struct error *err)
{
    for (struct job_view *view = node->daemon->views.jobs; view; view = view->hh.next) {
        int64_t bytes = 0;

        if (job_state_runs(view->state) && view->run->started_ns > 0 && view->run->held.at_ns <= 0)
            memory_usage_begin(&job_view_run(view)->held,
                               view->run->started_ns); /* it started under an earlier carma, which did not count */
        for (uint32_t i = 0; i < view->placement_count && view->run->held.at_ns > 0; i++)
            history_add(&bytes, view->placements[i].observed_bytes);
        if (view->run->held.at_ns > 0 && view->run->held.bytes == 0)
            memory_usage_set(&job_view_run(view)->held, view->run->held.at_ns, bytes, bytes);
    }
    return store_load_held(node->daemon->store, load_held, node, err);
}
