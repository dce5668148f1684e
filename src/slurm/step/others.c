#include "slurm/step/others.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"

/* One for all such tasks of the machine that Slurm holds in no group of their own. */
static const char OURS[] = "/carma-no-gpu";

char *others_own_group(pid_t pid)
{
    CLEANUP(free_ptr) char *path = cgroup_of(pid);

    return path && strstr(path, "slurmstepd") && strstr(path, "/job_") ? steal_ptr(&path) : NULL;
}

static int put_filter(const char *group)
{
    CLEANUP(free_ptr) char *devices = NULL;
    size_t length;
    struct device_filter none = {0};

    if (file_read("/proc/devices", 1 << 20, &devices, &length, NULL) == 0)
        none.caps_major = device_filter_major(devices, "nvidia-caps");
    return device_filter_attach(&none, group, NULL);
}

int others_enter(const char *directory, pid_t pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/cgroup.procs", directory);
    CLEANUP(free_ptr) char *text = xasprintf("%d", (int)pid);
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int others_hide_gpus(pid_t pid)
{
    CLEANUP(free_ptr) char *own = others_own_group(pid);
    CLEANUP(free_ptr) char *directory = cgroup_locate(cgroup_place()->mounts, OURS);
    bool made;
    int code;

    if (own)
        return put_filter(own);
    if (!directory)
        return -ENOENT;
    made = mkdir(directory, 0755) == 0;
    code = made ? put_filter(OURS) : 0;
    if (code && made)
        rmdir(directory);
    return code ? code : others_enter(directory, pid);
}
