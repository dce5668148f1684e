#include "vnode/node.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "vnode/physics.h"

/* Looking for every owner in /proc costs some 10 us each: not more often than this, on the wall clock. */
#define SWEEP_WALL_NS (10 * NS_PER_MS)

int64_t node_now_ns(const struct node *node)
{
    return (int64_t)((double)nodetime_clock_ns(CLOCK_BOOTTIME) * node->file->time_scale);
}

/* A new UUID as NVML writes it, with `prefix`; *id: its source. */
static int make_uuid(const char *prefix, char uuid[static 48], unsigned char id[static 16])
{
    if (getrandom(id, 16, 0) != 16)
        return -EIO;
    id[6] = (id[6] & 0x0f) | 0x40; /* RFC 9562: version 4, random */
    id[8] = (id[8] & 0x3f) | 0x80;
    snprintf(uuid, 48, "%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix, id[0], id[1],
             id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
    return 0;
}

static int fill_identity(struct node_file *file)
{
    for (uint32_t g = 0; g < file->gpu_count; g++) {
        struct node_gpu *gpu = &file->gpus[g];
        unsigned char id[16];
        uint64_t serial;
        int rc = make_uuid("GPU-", gpu->uuid, id);

        memcpy(&serial, id, sizeof serial);
        snprintf(gpu->serial, sizeof gpu->serial, "1%012llu", (unsigned long long)(serial % 1000000000000u));
        for (uint32_t i = 0; rc == 0 && i < gpu->instance_count; i++)
            rc = make_uuid("MIG-", gpu->instances[i].uuid, id);
        if (rc < 0)
            return rc;
        atomic_store(&file->order[g], g);
    }
    return 0;
}

static int write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t n = write(fd, at, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

static int fill_file(struct node_file *file, const struct node_file *wanted)
{
    int rc;

    memcpy(file->magic, NODE_MAGIC, sizeof file->magic);
    file->version = NODE_VERSION;
    file->size = sizeof *file;
    file->gpu_count = wanted->gpu_count;
    file->cuda_version = wanted->cuda_version;
    file->time_scale = nodetime_scale();
    memcpy(file->profile, wanted->profile, sizeof file->profile);
    memcpy(file->driver_version, wanted->driver_version, sizeof file->driver_version);
    file->spread_seed = wanted->spread_seed;
    memcpy(file->gpus, wanted->gpus, sizeof file->gpus);
    rc = fill_identity(file);
    file->banks[0].updated_ns = (int64_t)((double)nodetime_clock_ns(CLOCK_BOOTTIME) * file->time_scale);
    return rc;
}

int node_create(const char *path, const struct node_file *wanted, int mode, struct error *err)
{
    char beside[PATH_MAX];
    struct node_file *file;
    int fd, rc;

    if (snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= (int)sizeof beside)
        return error_set(err, ENAMETOOLONG, "node state '%.60s...': the path is too long", path);
    file = calloc(1, sizeof *file);
    if (!file)
        return error_set(err, ENOMEM, "node state '%s': out of memory", path);
    fd = mkstemp(beside);
    if (fd < 0) {
        rc = error_set(err, errno, "node state '%s' cannot be made: %s", path, strerror(errno));
        free(file);
        return rc;
    }
    rc = fill_file(file, wanted);
    if (rc == 0)
        rc = write_all(fd, file, sizeof *file);
    if (rc == 0 && fchmod(fd, (mode_t)mode) < 0)
        rc = -errno;
    /* link, not rename: a node that is in use is never replaced under its users */
    if (rc == 0 && link(beside, path) < 0)
        rc = -errno;
    unlink(beside);
    close(fd);
    free(file);
    if (rc == -EEXIST)
        return error_set(err, EEXIST, "node state '%s' exists: remove it first, or choose another name", path);
    return rc == 0 ? 0 : error_set(err, -rc, "node state '%s' cannot be made: %s", path, strerror(-rc));
}

static int check_file(const struct node_file *file, const char *path, struct error *err)
{
    if (memcmp(file->magic, NODE_MAGIC, sizeof file->magic) != 0)
        return error_set(err, EINVAL, "'%s' is not a node's state: make one with carma-vnode create", path);
    if (file->version != NODE_VERSION || file->size != sizeof *file)
        return error_set(err, EINVAL, "node state '%s' has version %u, this program knows %d: make it anew", path,
                         file->version, NODE_VERSION);
    if (file->gpu_count == 0 || file->gpu_count > NODE_MAX_GPUS || !(file->time_scale >= 1) ||
        file->time_scale > NODETIME_SCALE_MAX)
        return error_set(err, EINVAL, "node state '%s' is damaged: make it anew", path);
    return 0;
}

int node_open(struct node *node, const char *path, struct error *err)
{
    const char *wanted_scale = getenv("CARMA_TIME_SCALE");
    struct stat st;
    int rc;

    *node = (struct node){.fd = -1, .threads = PTHREAD_MUTEX_INITIALIZER};
    if (!path)
        path = getenv("CARMA_VNODE");
    if (!path || !*path)
        return error_set(err, ENODEV, "CARMA_VNODE is not set: it names the virtual node's state file");
    node->fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (node->fd < 0)
        return error_set(err, errno, "node state '%s' (CARMA_VNODE) cannot be opened: %s", path, strerror(errno));
    if (fstat(node->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof *node->file) {
        rc = error_set(err, EINVAL, "'%s' is not a node's state: make one with carma-vnode create", path);
        goto fail;
    }
    node->file = mmap(NULL, sizeof *node->file, PROT_READ | PROT_WRITE, MAP_SHARED, node->fd, 0);
    if (node->file == MAP_FAILED) {
        node->file = NULL;
        rc = error_set(err, errno, "node state '%s' cannot be mapped: %s", path, strerror(errno));
        goto fail;
    }
    rc = check_file(node->file, path, err);
    if (rc < 0)
        goto fail;
    if (wanted_scale && *wanted_scale && strtod(wanted_scale, NULL) != node->file->time_scale) {
        rc = error_set(err, EINVAL, "node '%s' was made under CARMA_TIME_SCALE=%g, here it is %.40s: use one for both",
                       path, node->file->time_scale, wanted_scale);
        goto fail;
    }
    node->locker = getpid();
    return 0;
fail:
    node_close(node);
    return rc;
}

void node_close(struct node *node)
{
    if (node->file)
        munmap(node->file, sizeof *node->file);
    if (node->fd >= 0)
        close(node->fd);
    node->file = NULL;
    node->fd = -1;
}

/* A lock belongs to the open file description, which a fork shares: the child opens one of its own. */
static int own_lock(struct node *node)
{
    char link_path[64];
    int fd;

    if (node->locker == getpid())
        return 0;
    snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", node->fd);
    fd = open(link_path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    close(node->fd);
    node->fd = fd;
    node->threads = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* its holder may not exist here */
    node->locker = getpid();
    return 0;
}

/* Against the threads of this process, then against the other processes; else why not, as an errno. */
static int try_lock(struct node *node)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int rc = pthread_mutex_trylock(&node->threads);

    if (rc == 0 && fcntl(node->fd, F_OFD_SETLK, &whole) < 0) {
        rc = errno;
        pthread_mutex_unlock(&node->threads);
    }
    return rc;
}

static int lock(struct node *node)
{
    struct timespec pause = {.tv_nsec = 20 * NS_PER_US};
    int64_t deadline_ns = nodetime_monotonic_wall_ns() + NODE_LOCK_WALL_NS;
    int rc = own_lock(node);

    if (rc < 0)
        return rc;
    while ((rc = try_lock(node)) == EBUSY || rc == EAGAIN || rc == EACCES || rc == EINTR) {
        if (nodetime_monotonic_wall_ns() >= deadline_ns)
            return -ETIMEDOUT;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < NS_PER_MS)
            pause.tv_nsec *= 2;
    }
    return -rc;
}

static void unlock(struct node *node)
{
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    fcntl(node->fd, F_OFD_SETLK, &whole);
    pthread_mutex_unlock(&node->threads);
}

static struct node_bank *working_bank(struct node *node)
{
    return &node->file->banks[1 - (atomic_load(&node->file->active) & 1)];
}

static struct node_bank *active_bank(struct node *node)
{
    return &node->file->banks[atomic_load(&node->file->active) & 1];
}

/* In doubt an owner lives: a client that has run out of file descriptors, say, must not empty the node. Then nobody
 * knows whether it is stopped, either. */
static bool owner_alive(struct node_slot *slot, bool *changed)
{
    struct proc_stat stat;
    int rc = proc_read_stat(slot->pid, &stat);

    if (rc == 0 && slot->phase == (stat.state == 'T' ? NODE_SLOT_TRAINING : NODE_SLOT_STOPPED)) {
        slot->phase = stat.state == 'T' ? NODE_SLOT_STOPPED : NODE_SLOT_TRAINING;
        *changed = true;
    }
    if (rc == 0)
        return stat.start_ticks == slot->start_ticks && !stat.ended;
    if (rc == -ESRCH)
        return false;
    return rc != -ENOENT || kill(slot->pid, 0) == 0 || errno != ESRCH; /* /proc may hide it (hidepid) */
}

static void sweep(const struct node_file *file, struct node_bank *bank)
{
    int64_t wall_ns = nodetime_monotonic_wall_ns();
    bool changed = false;

    if (wall_ns >= bank->swept_wall_ns && wall_ns < bank->swept_wall_ns + SWEEP_WALL_NS)
        return;
    bank->swept_wall_ns = wall_ns;
    for (uint32_t i = 0; i < bank->slot_high; i++)
        if (bank->slots[i].phase != NODE_SLOT_FREE && !owner_alive(&bank->slots[i], &changed)) {
            bank->slots[i] = (struct node_slot){0};
            changed = true;
        }
    while (bank->slot_high > 0 && bank->slots[bank->slot_high - 1].phase == NODE_SLOT_FREE)
        bank->slot_high--;
    if (changed)
        physics_recompute(file, bank);
}

int node_begin(struct node *node, struct node_bank **bank)
{
    struct node_bank *from, *to;
    uint32_t slots;
    int rc;

    if (!node->file)
        return -ENODEV;
    rc = lock(node);
    if (rc < 0)
        return rc;
    from = active_bank(node);
    to = working_bank(node);
    slots = from->slot_high < NODE_MAX_SLOTS ? from->slot_high : NODE_MAX_SLOTS;
    memcpy(to, from, offsetof(struct node_bank, slots) + slots * sizeof to->slots[0]);
    to->slot_high = slots;
    physics_advance(node->file, to, node_now_ns(node));
    sweep(node->file, to);
    *bank = to;
    return 0;
}

static bool same_rates(const struct node_bank *a, const struct node_bank *b)
{
    if (a->slot_high != b->slot_high)
        return false;
    for (uint32_t i = 0; i < a->slot_high; i++)
        if (a->slots[i].rate != b->slots[i].rate)
            return false;
    return true;
}

void node_commit(struct node *node)
{
    bool same = same_rates(active_bank(node), working_bank(node));

    atomic_store(&node->file->active, 1 - (atomic_load(&node->file->active) & 1));
    unlock(node);
    if (!same)
        node_wake(node);
}

void node_abandon(struct node *node)
{
    unlock(node);
}

void node_wait(struct node *node, uint32_t generation, int64_t wall_ns)
{
    struct timespec timeout = {.tv_sec = wall_ns / NS_PER_SEC, .tv_nsec = wall_ns % NS_PER_SEC};

    if (wall_ns > 0)
        syscall(SYS_futex, &node->file->generation, FUTEX_WAIT, generation, &timeout, NULL, 0);
}

void node_wake(struct node *node)
{
    int saved = errno;

    atomic_fetch_add(&node->file->generation, 1);
    syscall(SYS_futex, &node->file->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}
