#include "base/nodetime.h"
#include "base/units.h"
#include "base/xid.h"
#include "daemon/node/node_internal.h"

/* The samples before the end that count. A framework that ran out of memory takes seconds to take itself down, and
 * gives its memory back on the way. */
#define LAST_SAMPLES 8

/* How long before the end an Xid may have been reported to be taken for its reason. On a virtual node a process needs
 * as long on the wall clock to come to its end as elsewhere, so this is wall time. */
#define XID_WALL_NS (60 * NS_PER_SEC)

void node_remember(struct node_gpu *gpu)
{
    if (!(gpu->reading.valid & GPU_HAS_MEMORY))
        return;
    gpu->recent[gpu->recent_count++ % NODE_RECENT] =
        (struct node_sample){gpu->at_ns, gpu->reading.used_bytes, gpu->reading.total_bytes};
}

static void take_samples(const struct node_gpu *gpu, int64_t from_ns, int64_t to_ns, struct node_evidence *evidence)
{
    uint64_t oldest = gpu->recent_count > NODE_RECENT ? gpu->recent_count - NODE_RECENT : 0;
    int taken = 0;

    for (uint64_t i = gpu->recent_count; i > oldest && taken < LAST_SAMPLES; i--) {
        const struct node_sample *sample = &gpu->recent[(i - 1) % NODE_RECENT];
        int64_t free_bytes = sample->total_bytes - sample->used_bytes;
        if (sample->at_ns > to_ns)
            continue;
        if (sample->at_ns < from_ns && taken) /* one that was shorter than a period: as it was when it began */
            return;
        taken = sample->at_ns < from_ns ? LAST_SAMPLES : taken + 1;
        if (sample->used_bytes > evidence->used_bytes)
            evidence->used_bytes = sample->used_bytes;
        if (free_bytes >= 0 && (evidence->free_bytes < 0 || free_bytes < evidence->free_bytes))
            evidence->free_bytes = free_bytes;
    }
}

/* Instances of one GPU are one piece of hardware. */
static uint32_t first_of_hardware(const struct node *node, const struct node_gpu *gpu)
{
    const struct node_gpu *physical = node_physical(node, gpu);
    uint32_t first = gpu->number;

    for (size_t i = 0; physical && i < node->count; i++)
        if (node->gpus[i]->number < first && node_physical(node, node->gpus[i]) == physical)
            first = node->gpus[i]->number;
    return first;
}

static void take_xid(const struct node *node, const struct node_gpu *gpu, int64_t from_ns, int64_t to_ns,
                     struct node_evidence *evidence)
{
    const struct node_gpu *physical = node_physical(node, gpu);
    int64_t near_ns = (int64_t)((double)XID_WALL_NS * nodetime_scale());

    if (!physical || !physical->reading.xid)
        return;
    if (physical->reading.xid_at_ns < from_ns || physical->reading.xid_at_ns < to_ns - near_ns)
        return;
    if (xid_is_hardware(evidence->xid) && !xid_is_hardware(physical->reading.xid))
        return;
    evidence->xid = physical->reading.xid;
    evidence->xid_gpu = gpu->number;
    if (xid_is_hardware(evidence->xid))
        evidence->failed_gpu = first_of_hardware(node, gpu);
}

struct node_evidence node_evidence_of(const struct node *node, const struct job_view *view, int64_t started_ns,
                                      int64_t ended_ns)
{
    struct node_evidence evidence = {.complete = true, .used_bytes = -1, .free_bytes = -1, .failed_gpu = RECORD_NO_GPU};

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct node_gpu *gpu = node_gpu_numbered(node, view->placements[i].gpu);
        if (!gpu)
            continue; /* not read since the daemon started: the caller has to wait for it */
        take_samples(gpu, started_ns, ended_ns, &evidence);
        take_xid(node, gpu, started_ns, ended_ns, &evidence);
        if (!gpu->there) {
            evidence.lost = true;
            evidence.lost_gpu = gpu->number;
            evidence.failed_gpu = first_of_hardware(node, gpu);
        } else if (gpu->at_ns < ended_ns) {
            evidence.complete = false;
        }
    }
    return evidence;
}

int node_used_by(const struct node *node, const struct job_view *view, int64_t since_ns)
{
    int used = 0;
    bool unread = false;

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct node_gpu *gpu = node_gpu_numbered(node, view->placements[i].gpu);
        if (gpu && !gpu->there)
            continue;
        if (!gpu || gpu->at_ns < since_ns)
            unread = true;
        else if (attribution_of(&gpu->attribution, view->id) != 0)
            used++;
    }
    return used || !unread ? used : -1;
}
