#include "launch/hanging.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"

#define TEXT_LIMIT 65536 /* a user in thousands of groups has a long status */
#define EXITING    4     /* PF_EXITING of linux/sched.h */

/* A thread's file; false: it has ended. */
static bool read_text(int threads, const char *name, const char *file, char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", name, file);
    CLEANUP(close_fd) int fd = openat(threads, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, TEXT_LIMIT - 1);

    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool is_exiting(const char *stat)
{
    const char *after = strrchr(stat, ')');
    unsigned flags;

    return after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & EXITING;
}

static bool thread_only_hangs(int threads, const char *name)
{
    char text[TEXT_LIMIT];
    const char *state;

    if (!read_text(threads, name, "status", text))
        return true;
    state = strstr(text, "\nState:\t");
    state = state ? state + strlen("\nState:\t") : "";
    if (*state == 'Z' || *state == 'X')
        return true;
    return *state == 'D' &&
           (proc_shows_signal(text, "\nSigPnd:", SIGKILL) || proc_shows_signal(text, "\nShdPnd:", SIGKILL) ||
            (read_text(threads, name, "stat", text) && is_exiting(text)));
}

bool process_only_hangs(pid_t pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    struct dirent *entry;
    bool all = threads != NULL;

    while (all && (entry = readdir(threads)))
        all = *entry->d_name == '.' || thread_only_hangs(dirfd(threads), entry->d_name);
    if (threads)
        closedir(threads);
    return all;
}
