#include "sandbox/users.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define MAP_LIMIT 65536

/* Each range of ids that there is here, as itself. */
static int map(pid_t pid, const char *file)
{
    CLEANUP(free_ptr) char *own = xasprintf("/proc/self/%s", file), *path = xasprintf("/proc/%d/%s", (int)pid, file);
    CLEANUP(free_ptr) char *ranges = NULL;
    CLEANUP(strbuf_release) struct strbuf same = {0};
    CLEANUP(close_fd) int fd = -1;
    uint32_t first, count;
    size_t length;
    int rc = file_read(own, MAP_LIMIT, &ranges, &length, NULL);

    for (const char *line = ranges; rc == 0 && line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (sscanf(line, "%" SCNu32 " %*u %" SCNu32, &first, &count) == 2)
            strbuf_printf(&same, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", first, first, count);
    if (rc < 0)
        return rc;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, same.text, same.length) == (ssize_t)same.length ? 0 : -errno;
}

static void stay(pid_t parent) __attribute__((noreturn));
static void stay(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        pause();
    _exit(0);
}

int users_make(void)
{
    struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    const pid_t own = getpid(), pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    int rc, users = -1;

    if (pid == 0)
        stay(own);
    if (pid < 0)
        return -errno;
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/ns/user", (int)pid);
    rc = map(pid, "uid_map");
    if (rc == 0)
        rc = map(pid, "gid_map");
    if (rc == 0 && (users = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        rc = -errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return rc < 0 ? rc : users;
}

int users_enter(int users, struct error *err)
{
    return setns(users, CLONE_NEWUSER) < 0
               ? error_set(err, errno, "the sandbox's user namespace cannot be entered: %s", strerror(errno))
               : 0;
}
