#include "base/kernel/aside.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"

#define END_MS 200 /* Linux before 5.3 does not end one that waits for the lock: it is left behind then */

static int64_t left_ms(int64_t until_ns)
{
    return (until_ns - nodetime_monotonic_wall_ns()) / NS_PER_MS;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    for (int ms = 0; ms < END_MS && waitpid(pid, NULL, WNOHANG) == 0; ms++)
        poll(NULL, 0, 1);
}

char *aside_ask(void (*question)(const void *user, int fd), const void *user, int limit_ms)
{
    const int64_t until_ns = nodetime_monotonic_wall_ns() + limit_ms * NS_PER_MS;
    CLEANUP(strbuf_release) struct strbuf said = {0};
    ssize_t count = -1;
    char block[4096];
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return NULL;
    pid = fork();
    if (pid == 0) {
        question(user, fds[1]);
        _exit(0);
    }
    close(fds[1]);
    for (int64_t left; pid > 0 && count != 0 && (left = left_ms(until_ns)) > 0;) {
        struct pollfd answer = {.fd = fds[0], .events = POLLIN};
        if (poll(&answer, 1, (int)left) > 0 && (count = read(fds[0], block, sizeof block)) > 0)
            strbuf_append(&said, block, (size_t)count);
    }
    close(fds[0]);
    if (pid > 0)
        end(pid);
    return count == 0 ? strbuf_steal(&said) : NULL;
}
