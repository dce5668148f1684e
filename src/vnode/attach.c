#include "vnode/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "vnode/physics.h"

/* The GPU that `name` (length characters) means, or -1. */
static int find_gpu(const struct node_file *file, const char *name, size_t length)
{
    int found = -1;

    if (length > 0 && strspn(name, "0123456789") >= length) {
        long index = length < 4 ? strtol(name, NULL, 10) : LONG_MAX;

        return index < (long)file->gpu_count ? (int)index : -1;
    }
    if (length <= strlen("GPU-"))
        return -1;
    for (uint32_t g = 0; g < file->gpu_count; g++)
        if (strncmp(file->gpus[g].uuid, name, length) == 0) {
            if (found >= 0)
                return -1;
            found = (int)g;
        }
    return found;
}

uint32_t attach_visible_gpus(const struct node_file *file, const char *visible, uint32_t gpus[static NODE_MAX_GPUS])
{
    uint32_t count = 0;

    if (!visible) {
        for (uint32_t g = 0; g < file->gpu_count; g++)
            gpus[count++] = g;
        return count;
    }
    while (count < NODE_MAX_GPUS) {
        size_t length = strcspn(visible, ",");
        int gpu = find_gpu(file, visible, length);

        if (gpu < 0)
            return count;
        for (uint32_t i = 0; i < count; i++)
            if (gpus[i] == (uint32_t)gpu)
                return 0; /* as CUDA: a GPU named twice makes none visible */
        gpus[count++] = (uint32_t)gpu;
        if (!visible[length])
            return count;
        visible += length + 1;
    }
    return count;
}

bool attach_mps_announced(const char *pipe_directory)
{
    char path[PATH_MAX];

    return pipe_directory && *pipe_directory &&
           snprintf(path, sizeof path, "%s/control", pipe_directory) < (int)sizeof path && access(path, F_OK) == 0;
}

static int begin(struct node *node, struct node_bank **bank, struct error *err)
{
    int rc = node_begin(node, bank);

    if (rc == -ETIMEDOUT)
        return error_set(err, ETIMEDOUT, "the virtual node's lock is held by a process that does not move: end it");
    return rc < 0 ? error_set(err, -rc, "the virtual node cannot be used: %s", strerror(-rc)) : 0;
}

int attach_begin(struct attachment *attachment, struct node *node, const struct node_slot *wanted, struct error *err)
{
    struct proc_stat self;
    struct node_bank *bank;
    uint32_t i;
    int rc = proc_read_stat(getpid(), &self);

    if (rc < 0)
        return error_set(err, -rc, "/proc/self cannot be read: %s", strerror(-rc));
    rc = begin(node, &bank, err);
    if (rc < 0)
        return rc;
    for (i = 0; i < bank->slot_high && bank->slots[i].phase != NODE_SLOT_FREE; i++)
        ;
    if (i == NODE_MAX_SLOTS) {
        node_abandon(node);
        return error_set(err, EBUSY, "the virtual node has room for %d processes and is full", NODE_MAX_SLOTS);
    }
    if (i == bank->slot_high)
        bank->slot_high++;
    bank->slots[i] = *wanted;
    bank->slots[i].pid = getpid();
    bank->slots[i].start_ticks = self.start_ticks;
    bank->slots[i].phase = wanted->work_ns > 0 ? NODE_SLOT_LOADING : NODE_SLOT_ATTACHED;
    *attachment = (struct attachment){.node = node, .slot = i, .pid = getpid(), .start_ticks = self.start_ticks};
    physics_advance(node->file, bank, bank->updated_ns); /* a train_from_ns that has passed counts at once */
    node_commit(node);
    return 0;
}

/* The process's slot in the bank, or NULL where the node no longer has it. */
static struct node_slot *own_slot(const struct attachment *attachment, struct node_bank *bank)
{
    struct node_slot *slot = &bank->slots[attachment->slot];

    if (attachment->slot >= bank->slot_high || slot->phase == NODE_SLOT_FREE || slot->pid != attachment->pid ||
        slot->start_ticks != attachment->start_ticks)
        return NULL;
    return slot;
}

static int begin_own(struct attachment *attachment, struct node_bank **bank, struct node_slot **slot, struct error *err)
{
    int rc = begin(attachment->node, bank, err);

    if (rc < 0)
        return rc;
    *slot = own_slot(attachment, *bank);
    if (*slot)
        return 0;
    node_abandon(attachment->node);
    return error_set(err, ESTALE, "the virtual node no longer knows this process");
}

void attach_end(struct attachment *attachment)
{
    struct node_bank *bank;
    struct node_slot *slot;

    if (!attachment->node || begin_own(attachment, &bank, &slot, NULL) < 0)
        return;
    *slot = (struct node_slot){0};
    physics_recompute(attachment->node->file, bank);
    node_commit(attachment->node);
    attachment->node = NULL;
}

static void list_neighbours(const struct node_bank *bank, uint32_t gpu, const struct node_slot *self,
                            struct shortage *shortage)
{
    shortage->neighbour_count = 0;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        const struct node_slot *slot = &bank->slots[i];

        if (slot == self || slot->phase == NODE_SLOT_FREE)
            continue;
        for (uint32_t k = 0; k < slot->use_count && k < NODE_MAX_GPUS; k++)
            if (slot->uses[k].gpu == gpu && slot->uses[k].bytes > 0) {
                shortage->neighbours[shortage->neighbour_count++] =
                    (struct neighbour){.pid = slot->pid, .bytes = slot->uses[k].bytes};
                break;
            }
    }
}

int attach_hold(struct attachment *attachment, const int64_t *bytes, struct shortage *shortage, struct error *err)
{
    struct node *node = attachment->node;
    struct node_bank *bank;
    struct node_slot *slot;
    int rc = begin_own(attachment, &bank, &slot, err);

    if (rc < 0)
        return rc;
    for (uint32_t k = 0; k < slot->use_count; k++) {
        const struct node_gpu *gpu = &node->file->gpus[slot->uses[k].gpu];
        int64_t usable = gpu->total_bytes - gpu->reserved_bytes;
        int64_t used = physics_used_bytes(bank, slot->uses[k].gpu);

        if (bytes[k] > slot->uses[k].bytes && used - slot->uses[k].bytes + bytes[k] > usable) {
            shortage->use = k;
            shortage->wanted_bytes = bytes[k] - slot->uses[k].bytes;
            shortage->held_bytes = slot->uses[k].bytes;
            shortage->total_bytes = usable;
            shortage->free_bytes = usable - used;
            list_neighbours(bank, slot->uses[k].gpu, slot, shortage);
            node_abandon(node);
            return -ENOMEM;
        }
    }
    for (uint32_t k = 0; k < slot->use_count; k++)
        slot->uses[k].bytes = bytes[k];
    node_commit(node);
    return 0;
}

int attach_look(struct attachment *attachment, struct node_slot *slot, int64_t *now_ns, struct error *err)
{
    struct node_bank *bank;
    struct node_slot *own;
    int rc = begin_own(attachment, &bank, &own, err);

    if (rc < 0)
        return rc;
    *slot = *own;
    *now_ns = bank->updated_ns;
    node_commit(attachment->node);
    return 0;
}
