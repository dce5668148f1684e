/* The device nodes that a job needs for its GPUs, by the driver's and the kernel's answers; its numbers of them. */
#include <inttypes.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "daemon/node/node_internal.h"
#include "launch/cgroup/device_filter.h"

#define DEVICES    "/proc/devices"
#define MIG_MINORS "/proc/driver/nvidia-caps/mig-minors"
#define TEXT_LIMIT (1 << 20)

static char *read_text(const char *path)
{
    char *text;
    size_t length;

    return file_read(path, TEXT_LIMIT, &text, &length, NULL) < 0 ? NULL : text;
}

static bool add_gpu(const struct node *node, uint32_t number, struct device_filter *filter)
{
    const struct node_gpu *entry = node_gpu_numbered(node, number);
    const struct node_gpu *physical = entry ? node_physical(node, entry) : NULL;

    if (!physical || physical->reading.minor < 0)
        return false;
    filter->gpus[filter->gpu_count++] = (uint32_t)physical->reading.minor;
    if (physical == entry || !filter->caps_major)
        return true;
    return node->mig_minors &&
           device_filter_add_instance(filter, node->mig_minors, (uint32_t)physical->reading.minor,
                                      entry->reading.gpu_instance, entry->reading.compute_instance) == 0;
}

bool node_was_read(const struct node *node, const struct job_view *view)
{
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (!node_gpu_numbered(node, view->placements[i].gpu)) /* readings alone make it known */
            return false;
    return true;
}

int64_t node_index_of(const struct node *node, uint32_t number)
{
    const struct node_gpu *entry = node_gpu_numbered(node, number);

    return entry && entry->there ? (int64_t)entry->reading.index : -1;
}

/* Whether a number is not NVML's; or, where instances have numbers too, comes behind the number of a later GPU. */
static bool is_reordered(const struct node *node, bool instances)
{
    int64_t before = -1;

    for (uint32_t i = 0; i < core_gpu_count(node->daemon->core); i++) {
        int64_t index = node_index_of(node, i);
        if (index >= 0 && (instances ? index < before : index != (int64_t)i))
            return true;
        before = index >= 0 ? index : before;
    }
    return false;
}

char *node_order_text(const struct node *node)
{
    bool instances = node_has_instances(node);
    struct strbuf out = {0};

    if (!is_reordered(node, instances))
        return NULL;
    for (uint32_t i = 0; i < core_gpu_count(node->daemon->core); i++) {
        int64_t index = node_index_of(node, i);
        if (index >= 0 && (instances || index != (int64_t)i))
            strbuf_printf(&out, "%sGPU %" PRIu32 " is %snvidia-smi's %" PRId64, out.length ? ", " : "", i,
                          node_gpu_numbered(node, i)->reading.kind == GPU_INSTANCE ? "a part of " : "", index);
    }
    strbuf_puts(&out, ": a number of carma's stays with its GPU, by UUID");
    return strbuf_steal(&out);
}

bool node_has_instances(const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->gpus[i]->there && node->gpus[i]->reading.kind == GPU_PARTITIONED)
            return true;
    return false;
}

void node_read_devices(struct node *node)
{
    CLEANUP(free_ptr) char *devices = read_text(DEVICES);

    node->caps_major = devices ? device_filter_major(devices, "nvidia-caps") : 0;
    free_ptr(&node->mig_minors);
    if (node->caps_major)
        node->mig_minors = read_text(MIG_MINORS);
}

bool node_devices_of(const struct node *node, const struct job_view *view, struct device_filter *filter)
{
    *filter = (struct device_filter){.caps_major = node->caps_major};
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (!add_gpu(node, view->placements[i].gpu, filter))
            return false;
    return true;
}
