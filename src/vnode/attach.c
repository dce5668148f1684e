#include "vnode/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "vnode/domain.h"
#include "vnode/physics.h"

/* From which driver on limits are found by UUID, too; older ones take no notice of such (k8s-device-plugin 0.15). The
 * first that is known to. */
#define UUID_LIMITS_DRIVER 615

#define HELD_WALL_NS (60 * NS_PER_SEC) /* a lock that is held for so long is that of a process that is stopped */

/* Counts in *found whether `uuid` begins with `name`. */
static void match(const char *uuid, const char *name, size_t length, struct place at, struct place *place, int *found)
{
    if (strncmp(uuid, name, length) != 0)
        return;
    *place = at;
    (*found)++;
}

/* The place that `name` (length characters) means; false: none, or more than one. */
static bool find_place(const struct node_file *file, const struct numbering *numbering, const char *name, size_t length,
                       struct place *place)
{
    int found = 0;

    if (length > 0 && strspn(name, "0123456789") >= length) {
        long index = length < 4 ? strtol(name, NULL, 10) : LONG_MAX;

        if (index >= (long)numbering->count)
            return false;
        *place = (struct place){.gpu = numbering->gpus[index]};
        found = 1;
    } else if (length > strlen("GPU-")) {
        for (uint32_t g = 0; g < file->gpu_count; g++) {
            const struct node_gpu *gpu = &file->gpus[g];

            match(gpu->uuid, name, length, (struct place){.gpu = g}, place, &found);
            for (uint32_t i = 0; i < gpu->instance_count; i++)
                match(gpu->instances[i].uuid, name, length, (struct place){.gpu = g, .instance = 1 + i}, place, &found);
        }
    }
    if (found != 1 || place->gpu >= file->gpu_count)
        return false;
    if (file->gpus[place->gpu].mig && place->instance == 0) {
        place->instance = 1;
        return file->gpus[place->gpu].instance_count > 0;
    }
    return true;
}

uint32_t attach_visible(const struct node_file *file, const struct numbering *numbering, const char *visible,
                        struct place places[static NODE_MAX_GPUS])
{
    struct numbering as_on_the_node;
    uint32_t count = 0;

    if (!numbering) {
        numbering_of_node(file, &as_on_the_node);
        numbering = &as_on_the_node;
    }
    if (!visible) {
        for (uint32_t i = 0; i < numbering->count; i++)
            if (!file->gpus[numbering->gpus[i]].mig)
                places[count++] = (struct place){.gpu = numbering->gpus[i]};
        return count;
    }
    while (count < NODE_MAX_GPUS) {
        size_t length = strcspn(visible, ",");
        struct place place;

        if (!find_place(file, numbering, visible, length, &place))
            return count;
        for (uint32_t i = 0; i < count; i++)
            if (places[i].gpu == place.gpu && places[i].instance == place.instance)
                return 0; /* as CUDA: a GPU named twice makes none visible */
        if (place.instance > 0 && count > 0)
            return count;
        places[count++] = place;
        if (place.instance > 0 || !visible[length])
            return count;
        visible += length + 1;
    }
    return count;
}

/* A socket stays when its daemon has gone. One that the process may not write is another user's. */
static bool is_out_of_reach(const char *path, const struct stat *st)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;
    bool out;

    if (!S_ISSOCK(st->st_mode) || strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    out = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 &&
          (errno == ECONNREFUSED || errno == EACCES);
    close_fd(&fd);
    return out;
}

uint64_t attach_mps_domain(const char *pipe_directory)
{
    char path[PATH_MAX];
    struct stat st;
    uint64_t domain;

    if (!pipe_directory || !*pipe_directory ||
        snprintf(path, sizeof path, "%s/control", pipe_directory) >= (int)sizeof path || stat(path, &st) < 0 ||
        is_out_of_reach(path, &st))
        return 0;
    domain = (uint64_t)st.st_dev << 48 ^ (uint64_t)st.st_ino;
    return domain ? domain : 1;
}

/* Whether the place's UUID begins with `name`. */
static bool is_named(const struct node_file *file, const struct place *place, const char *name, size_t length)
{
    const struct node_gpu *gpu = &file->gpus[place->gpu];
    const char *uuid = place->instance ? gpu->instances[place->instance - 1].uuid : gpu->uuid;

    return length > strlen("GPU-") && strncmp(uuid, name, length) == 0;
}

/* An entry for no GPU that the process sees drops every limit, as NVIDIA measured it. */
void attach_memory_limits(const struct node_file *file, const char *value, const struct place *places, uint32_t count,
                          int64_t limits[static NODE_MAX_GPUS])
{
    bool knows_uuids = atoi(file->driver_version) >= UUID_LIMITS_DRIVER;

    memset(limits, 0, NODE_MAX_GPUS * sizeof *limits);
    while (value && *value) {
        size_t length = strcspn(value, "=,");
        bool by_number = strspn(value, "0123456789") == length;
        uint32_t k = by_number ? (uint32_t)strtoul(value, NULL, 10) : 0;
        char *end = (char *)value + length;
        long long amount = *end == '=' ? strtoll(end + 1, &end, 10) : 0;

        while (!by_number && k < count && !is_named(file, &places[k], value, length))
            k++;
        if (by_number || knows_uuids) {
            if (k >= count) {
                memset(limits, 0, NODE_MAX_GPUS * sizeof *limits);
                return;
            }
            if (amount > 0 && (*end == 'G' || *end == 'M'))
                limits[k] = amount * (*end == 'G' ? GIB : MIB);
        }
        value += strcspn(value, ",");
        value += *value == ',';
    }
}

/* CUDA does not fail because another process has no processor: who holds the lock on a busy machine is waited for. */
static int begin(struct node *node, struct node_bank **bank, struct error *err)
{
    int64_t until_ns = nodetime_monotonic_wall_ns() + HELD_WALL_NS;
    int rc;

    do
        rc = node_begin(node, bank);
    while (rc == -ETIMEDOUT && nodetime_monotonic_wall_ns() < until_ns);
    if (rc == -ETIMEDOUT)
        return error_set(err, ETIMEDOUT, "the virtual node's lock is held by a process that does not move: end it");
    return rc < 0 ? error_set(err, -rc, "the virtual node cannot be used: %s", strerror(-rc)) : 0;
}

/* The domain's server is in FAULT until all clients that failed have left, and takes no new ones. */
static bool server_in_fault(const struct node_bank *bank, const struct node_slot *wanted)
{
    for (uint32_t i = 0; wanted->mps && i < bank->slot_high; i++)
        if (bank->slots[i].phase != NODE_SLOT_FREE && bank->slots[i].mps && bank->slots[i].fault &&
            bank->slots[i].mps_domain == wanted->mps_domain)
            return true;
    return false;
}

int attach_begin(struct attachment *attachment, struct node *node, const struct node_slot *wanted, struct error *err)
{
    struct proc_stat self;
    struct node_bank *bank;
    bool in_fault;
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
    in_fault = server_in_fault(bank, wanted);
    bank->slots[i] = *wanted;
    bank->slots[i].fault = in_fault ? CUDA_FAULT_MPS_SERVER_NOT_READY : 0;
    bank->slots[i].pid = getpid();
    bank->slots[i].uid = getuid();
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

static void list_neighbours(const struct node_bank *bank, const struct node_use *use, const struct node_slot *self,
                            struct shortage *shortage)
{
    shortage->neighbour_count = 0;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        const struct node_slot *slot = &bank->slots[i];

        if (slot == self || slot->phase == NODE_SLOT_FREE)
            continue;
        for (uint32_t k = 0; k < slot->use_count && k < NODE_MAX_GPUS; k++)
            if (slot->uses[k].gpu == use->gpu && slot->uses[k].instance == use->instance && slot->uses[k].bytes > 0) {
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
        const struct node_use *use = &slot->uses[k];
        int64_t usable = physics_usable_bytes(node->file, use->gpu, use->instance);
        int64_t used = physics_instance_used_bytes(bank, use->gpu, use->instance);

        int64_t free_bytes = usable - used, limit = attachment->limits[k];

        if (limit && limit - use->bytes < free_bytes)
            free_bytes = limit > use->bytes ? limit - use->bytes : 0;
        shortage->limited = limit && limit - use->bytes <= free_bytes;
        if (bytes[k] > use->bytes && bytes[k] - use->bytes > free_bytes) {
            shortage->use = k;
            shortage->wanted_bytes = bytes[k] - use->bytes;
            shortage->held_bytes = use->bytes;
            shortage->total_bytes = usable;
            shortage->free_bytes = free_bytes;
            list_neighbours(bank, use, slot, shortage);
            node_abandon(node);
            domain_tell_server(slot->mps ? slot->mps_server_pid : 0, DOMAIN_REFUSED, slot->pid);
            return -ENOMEM;
        }
    }
    for (uint32_t k = 0; k < slot->use_count; k++)
        slot->uses[k].bytes = bytes[k];
    node_commit(node);
    return 0;
}

int attach_idle(struct attachment *attachment, struct error *err)
{
    struct node_bank *bank;
    struct node_slot *slot;
    int rc = begin_own(attachment, &bank, &slot, err);

    if (rc < 0)
        return rc;
    slot->phase = NODE_SLOT_ATTACHED;
    physics_recompute(attachment->node->file, bank);
    node_commit(attachment->node);
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
