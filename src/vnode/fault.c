#include "vnode/fault.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static_assert(NODE_FAULT_KINDS <= NODE_MAX_FAULTS && NODE_MAX_GPUS < 32, "faults and GPUs have to fit");

uint32_t fault_all_gpus(const struct node *node)
{
    return (1u << node->file->gpu_count) - 1;
}

uint32_t fault_gpus(const struct node *node, enum node_fault_kind kind)
{
    const struct node_fault *fault = &node->file->faults[kind];
    uint32_t gpus = atomic_load(&fault->gpus);

    return gpus && node_now_ns(node) < atomic_load(&fault->until_ns) ? gpus & fault_all_gpus(node) : 0;
}

bool fault_on(const struct node *node, enum node_fault_kind kind, uint32_t gpu)
{
    return fault_gpus(node, kind) >> gpu & 1;
}

void fault_set(struct node *node, enum node_fault_kind kind, uint32_t gpus, int64_t until_ns)
{
    struct node_fault *fault = &node->file->faults[kind];

    atomic_store(&fault->gpus, 0); /* never the new end with the old GPUs */
    atomic_store(&fault->until_ns, until_ns);
    atomic_store(&fault->gpus, gpus);
}

/* The name without "_v2" and the like. */
static size_t name_length(const char *call)
{
    size_t length = strlen(call);

    return length > 3 && call[length - 3] == '_' && call[length - 2] == 'v' ? length - 3 : length;
}

static bool is_of(const struct node_call_fault *fault, const char *call)
{
    size_t length = name_length(call);

    return length < sizeof fault->call && memcmp(fault->call, call, length) == 0 && fault->call[length] == '\0';
}

int fault_of_call(const struct node *node, const char *call, uint32_t gpus)
{
    for (size_t i = 0; i < NODE_MAX_CALLS; i++) {
        const struct node_call_fault *fault = &node->file->calls[i];

        if (gpus && (atomic_load(&fault->gpus) & gpus) == gpus && is_of(fault, call) &&
            node_now_ns(node) < atomic_load(&fault->until_ns))
            return fault->code;
    }
    return 0;
}

int fault_set_call(struct node *node, const char *call, int code, uint32_t gpus, int64_t until_ns)
{
    size_t length = name_length(call);

    if (strncmp(call, "nvml", 4) != 0 || length >= sizeof node->file->calls[0].call)
        return -EINVAL;
    for (size_t i = 0; i < NODE_MAX_CALLS; i++) {
        struct node_call_fault *fault = &node->file->calls[i];

        if (atomic_load(&fault->gpus) && node_now_ns(node) < atomic_load(&fault->until_ns))
            continue;
        atomic_store(&fault->gpus, 0);
        snprintf(fault->call, sizeof fault->call, "%.*s", (int)length, call);
        fault->code = code;
        atomic_store(&fault->until_ns, until_ns);
        atomic_store(&fault->gpus, gpus);
        return 0;
    }
    return -ENOSPC;
}

int fault_xid(struct node *node, uint32_t gpu, uint32_t instance, uint32_t xid, int32_t pid)
{
    struct node_bank *bank;
    int rc = node_begin(node, &bank); /* one at a time */
    uint32_t count;

    if (rc < 0)
        return rc;
    count = atomic_load(&node->file->xid_count);
    node->file->xids[count % NODE_MAX_XIDS] =
        (struct node_xid){.at_ns = bank->updated_ns, .gpu = gpu, .instance = instance, .xid = xid, .pid = pid};
    atomic_store(&node->file->xid_count, count + 1);
    node_commit(node);
    node_wake(node);
    return 0;
}
