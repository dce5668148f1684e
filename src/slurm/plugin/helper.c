#include "slurm/plugin/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    GREETING_MS = 10000, /* one that hangs from the start is not waited for longer, whatever it was to do */
    END_MS = 200,
};

char helper_path[PATH_MAX] = "";

int64_t helper_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* PREFIX/lib/carma/slurm/libcarma_spank.so is the plugin, whatever the link is called by which Slurm has found it. */
static const char *find_program(void)
{
    Dl_info self;
    char plugin[PATH_MAX];
    struct stat info;

    if (dladdr(helper_path, &self) == 0 || realpath(self.dli_fname, plugin) == NULL)
        return "is not found: the plugin does not know its own place";
    for (int up = 0; up < 2; up++)
        *strrchr(plugin, '/') = '\0';
    if ((size_t)snprintf(helper_path, PATH_MAX, "%s/" HELPER_NAME, plugin) >= PATH_MAX)
        return "has too long a path";
    if (stat(helper_path, &info) != 0)
        return "is missing: install carma-slurm again";
    if (!S_ISREG(info.st_mode) || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 || info.st_uid != 0)
        return "is not root's alone: chown root and chmod go-w it";
    return NULL;
}

static int spawn(const char *verb, int end, pid_t *pid)
{
    char *arguments[] = {(char *)HELPER_NAME, (char *)HELPER_VERSION, (char *)verb, NULL};
    char *environment[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;

    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &all); /* until it minds them: src/slurm/step/main.c */
    posix_spawnattr_setsigdefault(&attributes, &all);
    int code = posix_spawn_file_actions_adddup2(&actions, end, 0);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(&actions, end, 1);
    if (code == 0)
        code = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (code == 0)
        code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (code == 0)
        code = posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (code == 0)
        code = posix_spawn(pid, helper_path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

bool helper_start(struct helper *helper, const char *verb)
{
    int ends[2], code;

    *helper = (struct helper){.fd = -1, .pidfd = -1, .parent = getpid(), .fault = find_program()};
    if (helper->fault != NULL)
        return false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        helper->fault = strerror(errno);
        return false;
    }
    code = spawn(verb, ends[1], &helper->pid);
    close(ends[1]);
    if (code != 0) {
        close(ends[0]);
        helper->fault = strerror(code);
        return false;
    }
    helper->fd = ends[0];
    helper->pidfd = (int)syscall(SYS_pidfd_open, helper->pid, 0);
    return true;
}

void helper_say(struct helper *helper, const char *text, size_t length)
{
    while (helper->fd >= 0 && length > 0) {
        ssize_t sent = send(helper->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EINTR) {
            shutdown(helper->fd, SHUT_WR); /* so that it does not wait for the rest */
            return;
        }
        text += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
}

ssize_t helper_read(int fd, void *bytes, size_t size, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - helper_now_ms();
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int ready = left > 0 ? poll(&one, 1, (int)left) : 0;
        ssize_t got = ready > 0 ? read(fd, bytes, size) : -1;

        if (ready == 0)
            return -ETIMEDOUT;
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return errno == ECONNRESET ? 0 : -errno;
    }
}

static const char *fail(struct helper *helper, const char *fault, bool lost)
{
    helper->fault = fault;
    helper->lost = lost;
    return NULL;
}

static const char *hear_line(struct helper *helper, int64_t deadline_ms)
{
    for (;;) {
        char *line = helper->bytes + helper->begin;
        char *end = memchr(line, '\n', helper->length);

        if (end != NULL) {
            *end = '\0';
            helper->begin += (size_t)(end + 1 - line);
            helper->length -= (size_t)(end + 1 - line);
            return line;
        }
        memmove(helper->bytes, line, helper->length);
        helper->begin = 0;
        if (helper->length == sizeof(helper->bytes))
            return fail(helper, "says too long a line", false);
        ssize_t got = helper_read(helper->fd, helper->bytes + helper->length, sizeof(helper->bytes) - helper->length,
                                  deadline_ms);
        if (got <= 0)
            return got == -ETIMEDOUT ? fail(helper, "does not answer", false)
                                     : fail(helper, "ended before it was done", true);
        helper->length += (size_t)got;
    }
}

const char *helper_hear(struct helper *helper, int64_t deadline_ms)
{
    if (!helper->greeted) {
        int64_t soon_ms = helper_now_ms() + GREETING_MS;
        const char *line = hear_line(helper, soon_ms < deadline_ms ? soon_ms : deadline_ms);
        if (line == NULL)
            return NULL;
        if (strcmp(line, HELPER_NAME " " HELPER_VERSION) != 0)
            return fail(helper, "is of another version: install carma-slurm again, and restart slurmd", false);
        helper->greeted = true;
    }
    return hear_line(helper, deadline_ms);
}

void helper_leave(struct helper *helper, bool kill)
{
    if (helper->fd < 0)
        return;
    close(helper->fd);
    if (kill && helper->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
    /* One that hangs in the kernel does not end when it is killed. */
    for (int ms = 0; kill && helper->parent == getpid() && ms < END_MS && waitpid(helper->pid, NULL, WNOHANG) == 0;
         ms++)
        poll(NULL, 0, 1);
    if (helper->pidfd >= 0)
        close(helper->pidfd);
    helper->fd = helper->pidfd = -1;
}
