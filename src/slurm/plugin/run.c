#include "slurm/plugin/run.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/plugin/http.h"

enum { TAIL_BYTES = 64 << 10 };

/* In the child: only what is safe after the fork of a process with threads. */
static void tail_as(const char *path, const struct run_user *user, int to)
{
    if (setgroups((size_t)user->group_count, user->groups) != 0 || setresgid(user->gid, user->gid, user->gid) != 0 ||
        setresuid(user->uid, user->uid, user->uid) != 0)
        _exit(126);
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        _exit(125);
    off_t at = info.st_size > TAIL_BYTES ? info.st_size - TAIL_BYTES : 0;
    char part[4096];
    ssize_t got;
    while ((got = pread(fd, part, sizeof(part), at)) > 0) {
        if (write(to, part, (size_t)got) != got)
            _exit(125);
        at += got;
    }
    _exit(0);
}

static int read_child(pid_t child, int from, int64_t deadline_ms, struct text *output)
{
    int code = 0;
    char part[4096];
    while (code == 0) {
        int64_t left = deadline_ms - http_now_ms();
        struct pollfd one = {.fd = from, .events = POLLIN};
        int ready = left > 0 ? poll(&one, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t got = ready > 0 ? read(from, part, sizeof(part)) : -1;
        if (ready == 0)
            code = -ETIMEDOUT;
        else if (got <= 0)
            break;
        else if (output->length + (size_t)got <= TAIL_BYTES)
            text_add(output, part, (size_t)got);
    }
    close(from);
    if (code != 0)
        kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, code != 0 ? WNOHANG : 0) < 0 && errno == EINTR)
        ; /* one that hangs in its user's file system does not end when it is killed */
    if (output->failed)
        return -ENOMEM;
    return code != 0 ? code : status == 0 ? 0 : -EIO;
}

static int start(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid_t child = fork();
    if (child < 0) {
        int code = -errno;
        close(ends[0]);
        close(ends[1]);
        return code;
    }
    if (child > 0) {
        close(ends[1]);
        return child;
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    return 0;
}

int run_output(char *const argv[], int64_t deadline_ms, struct text *output)
{
    int ends[2];
    int child = start(ends);
    if (child < 0)
        return child;
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        if (null >= 0 && dup2(null, 0) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2)
            execv(argv[0], argv);
        _exit(127);
    }
    return read_child(child, ends[0], deadline_ms, output);
}

int run_work(void (*work)(const void *what, int to), const void *what, int64_t deadline_ms, struct text *output)
{
    int ends[2];
    int child = start(ends);
    if (child < 0)
        return child;
    if (child == 0) {
        work(what, ends[1]);
        _exit(0);
    }
    return read_child(child, ends[0], deadline_ms, output);
}

int run_tail(const char *path, const struct run_user *user, int64_t deadline_ms, struct text *output)
{
    int ends[2];
    int child = start(ends);
    if (child < 0)
        return child;
    if (child == 0)
        tail_as(path, user, ends[1]);
    return read_child(child, ends[0], deadline_ms, output);
}
