#include "launch/hanging.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define STATUS_LIMIT 65536 /* a user in thousands of groups has a long one */
#define GPU_DEVICE   "/dev/nvidia"

static bool is_pending(const char *text, const char *key, int signal)
{
    const char *line = strstr(text, key);

    return line && (strtoull(line + strlen(key), NULL, 16) >> (signal - 1) & 1);
}

static bool thread_only_hangs(int tasks, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/status", name);
    CLEANUP(close_fd) int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    char text[STATUS_LIMIT];
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *state;

    if (length <= 0)
        return true; /* it has ended meanwhile */
    text[length] = '\0';
    state = strstr(text, "\nState:\t");
    state = state ? state + strlen("\nState:\t") : "";
    return *state == 'Z' || *state == 'X' ||
           (*state == 'D' && (is_pending(text, "\nSigPnd:", SIGKILL) || is_pending(text, "\nShdPnd:", SIGKILL)));
}

static bool is_no_gpu(int descriptors, const char *name)
{
    char target[sizeof GPU_DEVICE] = {0}; /* its begin is enough; the file itself may hang, too */

    return readlinkat(descriptors, name, target, sizeof target - 1) < 0 || strcmp(target, GPU_DEVICE) != 0;
}

/* Whether the question is answered by yes for all entries of the directory that are numbers. */
static bool holds_for_all(pid_t pid, const char *directory, bool (*question)(int fd, const char *name))
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/%s", (int)pid, directory);
    DIR *entries = opendir(path);
    struct dirent *entry;
    bool all = entries != NULL;

    while (all && (entry = readdir(entries)))
        all = *entry->d_name == '.' || question(dirfd(entries), entry->d_name);
    if (entries)
        closedir(entries);
    return all;
}

bool process_only_hangs(pid_t pid)
{
    return holds_for_all(pid, "task", thread_only_hangs) && holds_for_all(pid, "fd", is_no_gpu);
}
