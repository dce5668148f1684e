#include "launch/hanging.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define TEXT_LIMIT 65536 /* a user in thousands of groups has a long status */
#define GPU_DEVICE "/dev/nvidia"
#define EXITING    4 /* PF_EXITING of linux/sched.h */

/* Whether the question is answered by yes for all entries of the directory that are numbers. */
static bool holds_for_all(int at, const char *directory, bool (*question)(int fd, const char *name))
{
    int fd = openat(at, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    bool all = entries != NULL;

    while (all && (entry = readdir(entries)))
        all = *entry->d_name == '.' || question(fd, entry->d_name);
    if (entries)
        closedir(entries);
    return all;
}

static bool is_no_gpu(int descriptors, const char *name)
{
    char target[sizeof GPU_DEVICE] = {0}; /* its begin is enough; the file itself may hang, too */

    return readlinkat(descriptors, name, target, sizeof target - 1) < 0 || strcmp(target, GPU_DEVICE) != 0;
}

/* A thread's file; false: it has ended. */
static bool read_text(int tasks, const char *name, const char *file, char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", name, file);
    CLEANUP(close_fd) int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, TEXT_LIMIT - 1);

    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool is_pending(const char *text, const char *key, int signal)
{
    const char *line = strstr(text, key);

    return line && (strtoull(line + strlen(key), NULL, 16) >> (signal - 1) & 1);
}

/* It has no descriptors any more; what it had may still be open, as where the driver hangs while it lets go of a GPU.
 */
static bool is_exiting(const char *stat)
{
    const char *after = strrchr(stat, ')');
    unsigned flags;

    return !after || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 || flags & EXITING;
}

/* Each thread by itself: when the main thread has ended, its list of descriptors is empty, and the others' is not. */
static bool thread_only_hangs(int tasks, const char *name)
{
    CLEANUP(free_ptr) char *descriptors = xasprintf("%s/fd", name);
    char text[TEXT_LIMIT];
    const char *state;

    if (!read_text(tasks, name, "status", text))
        return true;
    state = strstr(text, "\nState:\t");
    state = state ? state + strlen("\nState:\t") : "";
    if (*state == 'Z' || *state == 'X')
        return true;
    return *state == 'D' && (is_pending(text, "\nSigPnd:", SIGKILL) || is_pending(text, "\nShdPnd:", SIGKILL)) &&
           read_text(tasks, name, "stat", text) && !is_exiting(text) && holds_for_all(tasks, descriptors, is_no_gpu);
}

bool process_only_hangs(pid_t pid)
{
    CLEANUP(free_ptr) char *threads = xasprintf("/proc/%d/task", (int)pid);

    return holds_for_all(AT_FDCWD, threads, thread_only_hangs);
}
