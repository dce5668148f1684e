#include "slurm/plugin/others.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/cgroup/device_filter.h"

/* One for all such tasks of the machine that Slurm holds in no group of their own. */
static const char OURS[] = "/carma-no-gpu";

static ssize_t read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

bool others_own_group(char *path, size_t size)
{
    char text[1024];
    if (read_text("/proc/self/cgroup", text, sizeof(text)) <= 0)
        return false;
    char *line = strstr(text, "0::/");
    if (line == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return strstr(line, "slurmstepd") != NULL && strstr(line, "/job_") != NULL &&
           (size_t)snprintf(path, size, "%s", line + 3) < size;
}

static bool find_hierarchy(char *path, size_t size)
{
    char room[4096];
    struct mntent entry;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    bool found = false;
    while (mounts != NULL && !found && getmntent_r(mounts, &entry, room, sizeof(room)) != NULL)
        found = strcmp(entry.mnt_type, "cgroup2") == 0 && (size_t)snprintf(path, size, "%s", entry.mnt_dir) < size;
    if (mounts != NULL)
        endmntent(mounts);
    return found;
}

static int put_filter(int group)
{
    char devices[8192];
    read_text("/proc/devices", devices, sizeof(devices));
    struct device_filter none = {.caps_major = device_filter_major(devices, "nvidia-caps")};
    int program = device_filter_load(&none), code = program < 0 ? program : device_filter_put(program, group);
    if (program >= 0)
        close(program);
    return code;
}

static int enter(int group)
{
    int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    int code = fd < 0 || write(fd, "0", 1) != 1 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return code;
}

int others_hide_gpus(void)
{
    char hierarchy[512], own[1024], path[1600];
    if (!find_hierarchy(hierarchy, sizeof(hierarchy)))
        return -ENOENT;
    bool slurms = others_own_group(own, sizeof(own));
    snprintf(path, sizeof(path), "%s%s", hierarchy, slurms ? own : OURS);
    bool made = !slurms && mkdir(path, 0755) == 0;
    int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = group < 0 ? -errno : 0;
    if (code == 0 && (slurms || made))
        code = put_filter(group);
    if (code != 0 && made)
        rmdir(path);
    if (code == 0 && !slurms)
        code = enter(group);
    if (group >= 0)
        close(group);
    return code;
}
