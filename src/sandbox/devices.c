#include "sandbox/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "sandbox/kernel.h"

static const char *const names[DEVICES_COUNT] = {"null", "zero", "full", "random", "urandom"};
static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                       {"/proc/self/fd/0", "stdin"},
                                       {"/proc/self/fd/1", "stdout"},
                                       {"/proc/self/fd/2", "stderr"},
                                       {"pts/ptmx", "ptmx"}};

struct devices devices_take(void)
{
    struct devices devices;

    for (int i = 0; i < DEVICES_COUNT; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("/dev/%s", names[i]);
        devices.nodes[i] = kernel_clone_mount(path);
    }
    return devices;
}

void devices_release(struct devices *devices)
{
    for (int i = 0; i < DEVICES_COUNT; i++)
        if (devices->nodes[i] >= 0)
            close(devices->nodes[i]);
}

static int place_nodes(const struct devices *devices, const char *directory, struct error *err)
{
    for (int i = 0; i < DEVICES_COUNT; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, names[i]);
        int rc = devices->nodes[i];
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
        if (rc < 0 || (rc = kernel_allow_device(devices->nodes[i])) < 0 ||
            (rc = kernel_attach(devices->nodes[i], path)) < 0)
            return error_set(err, rc, "/dev/%s cannot be had: %s", names[i], strerror(-rc));
    }
    for (size_t i = 0; i < array_size(links); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, links[i][1]);
        if (symlink(links[i][0], path) < 0)
            return error_set(err, errno, "/dev/%s cannot be made: %s", links[i][1], strerror(errno));
    }
    return 0;
}

int devices_place(const struct devices *devices, const char *scratch, const char *target, struct error *err)
{
    CLEANUP(free_ptr) char *made = xasprintf("%s/devices", scratch), *memory = xasprintf("%s/memory", scratch);
    CLEANUP(free_ptr) char *shm = xasprintf("%s/shm", target), *pts = xasprintf("%s/pts", target);
    int rc;

    if (mkdir(made, 0755) < 0 || mkdir(memory, 0700) < 0 || chmod(memory, 01777) < 0 ||
        mount(made, target, NULL, MS_BIND, NULL) < 0)
        return error_set(err, errno, "no /dev of its own can be made: %s", strerror(errno));
    if ((rc = place_nodes(devices, target, err)) < 0)
        return rc;
    if (mkdir(shm, 0700) < 0 || mkdir(pts, 0755) < 0 || mount(memory, shm, NULL, MS_BIND, NULL) < 0 ||
        mount("devpts", pts, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") < 0)
        return error_set(err, errno, "no /dev/shm and /dev/pts of their own can be made: %s", strerror(errno));
    rc = kernel_close_mount(target, false);
    return rc < 0 ? error_set(err, rc, "/dev cannot be made read-only: %s", strerror(-rc)) : 0;
}
