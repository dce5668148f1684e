#include "sandbox/group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "sandbox/limits.h"

#define NAME          "sandbox-"
#define CPU_PERIOD_US 100000
#define EVENTS_LIMIT  4096

static bool set(const struct group *group, const char *file, const char *value)
{
    CLEANUP(close_fd) int fd = openat(group->fd, file, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

static bool set_number(const struct group *group, const char *file, int64_t value)
{
    CLEANUP(free_ptr) char *text = xasprintf("%" PRId64, value);

    return set(group, file, text);
}

/* Groups left by runs that were killed before they could remove their own. */
static void remove_left(const char *parent)
{
    DIR *entries = opendir(parent);
    const struct dirent *entry;
    int pid;

    while (entries && (entry = readdir(entries)))
        if (sscanf(entry->d_name, NAME "%d", &pid) == 1 && kill(pid, 0) < 0 && errno == ESRCH)
            unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR);
    if (entries)
        closedir(entries);
}

void group_make(const struct sandbox_request *request, struct group *group)
{
    *group = (struct group){.fd = -1};
    if (!request->cgroup)
        return;
    remove_left(request->cgroup);
    group->path = xasprintf("%s/" NAME "%d", request->cgroup, (int)getpid());
    if (mkdir(group->path, 0755) == 0)
        group->fd = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group->fd < 0) {
        group_remove(group);
        return;
    }
    group->counts =
        set_number(group, "memory.max", request->memory_bytes) && set_number(group, "pids.max", LIMIT_PROCESSES);
    set(group, "memory.swap.max", "0"); /* a kernel without swap accounting has none of it */
    set(group, "memory.oom.group", "1");
    set(group, "cpu.weight", "1");
    CLEANUP(free_ptr) char *quota = xasprintf("%" PRId64 " %d", request->cores * CPU_PERIOD_US, CPU_PERIOD_US);
    group->divides_cpus = set(group, "cpu.max", quota);
}

/* The number behind the word in the group's file of "WORD NUMBER" lines is above 0. */
static bool has_event(const struct group *group, const char *file, const char *word)
{
    CLEANUP(close_fd) int fd = group->path ? openat(group->fd, file, O_RDONLY | O_CLOEXEC) : -1;
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int64_t count = 0;

    if (fd < 0 || file_read_fd(fd, file, EVENTS_LIMIT, &text, &length, NULL) < 0)
        return false;
    for (const char *line = text; line && !count; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            sscanf(line + strlen(word), " %" SCNd64, &count);
    return count > 0;
}

bool group_ran_out_of_memory(const struct group *group)
{
    return has_event(group, "memory.events", "oom_kill");
}

bool group_ran_out_of_processes(const struct group *group)
{
    return has_event(group, "pids.events", "max");
}

void group_enter(struct group *group, pid_t pid)
{
    if (group->path && !set_number(group, "cgroup.procs", pid))
        group_remove(group);
}

void group_remove(struct group *group)
{
    close_fd(&group->fd);
    if (group->path)
        rmdir(group->path);
    free_ptr(&group->path);
    group->counts = group->divides_cpus = false;
}
