#include "vnode/fault.h"

#include <assert.h>

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
