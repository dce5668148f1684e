#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"

#define OUT_LIMIT    ((size_t)16 << 20)
#define ERRORS_LIMIT ((size_t)64 << 10)
#define DYING_MS     2000

void cli_child_release(struct cli_child *answer)
{
    strbuf_release(&answer->out);
    strbuf_release(&answer->errors);
}

static int start(const char *const *argv, int input, int out[2], int errors[2], pid_t *pid, struct error *err)
{
    posix_spawn_file_actions_t actions;
    int rc;

    posix_spawn_file_actions_init(&actions);
    if (input < 0)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
    rc = posix_spawn(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc ? error_set(err, rc, "%s cannot be started: %s", argv[0], strerror(rc)) : 0;
}

/* False: this end has come. */
static bool take(int fd, struct strbuf *into, size_t limit)
{
    char block[16384];
    ssize_t count = read(fd, block, sizeof block);

    if (count > 0 && into->length < limit)
        strbuf_append(into, block, (size_t)count);
    return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

/* True: both have ended, or it was enough; false: time is up. */
static bool listen_to(struct pollfd fds[2], int64_t deadline_ns, bool (*taken)(void *user, const struct strbuf *out),
                      void *user, struct cli_child *answer)
{
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        int64_t left_ms = (deadline_ns - nodetime_monotonic_wall_ns()) / NS_PER_MS;
        if (left_ms <= 0)
            return false;
        if (poll(fds, 2, (int)left_ms + 1) <= 0)
            continue;
        if (fds[0].revents && !take(fds[0].fd, &answer->out, OUT_LIMIT))
            fds[0].fd = -1;
        if (fds[1].revents && !take(fds[1].fd, &answer->errors, ERRORS_LIMIT))
            fds[1].fd = -1;
        if (taken && taken(user, &answer->out))
            return true;
    }
    return true;
}

/* Kills it where it has not ended by itself, or closed its output and goes on. */
static void end(pid_t pid, bool ended, struct cli_child *answer)
{
    int64_t deadline_ns = nodetime_monotonic_wall_ns() + DYING_MS * NS_PER_MS;

    if (!ended)
        kill(pid, SIGKILL);
    while (waitpid(pid, &answer->status, WNOHANG) == 0) {
        if (nodetime_monotonic_wall_ns() >= deadline_ns) {
            kill(pid, SIGKILL);
            return;
        }
        poll(NULL, 0, 5);
    }
}

int cli_child_run(const char *const *argv, int input, int64_t time_ms,
                  bool (*taken)(void *user, const struct strbuf *out), void *user, struct cli_child *answer,
                  struct error *err)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1}, rc = 0;
    pid_t pid;

    *answer = (struct cli_child){0};
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0)
        rc = error_set(err, errno, "no pipe: %s", strerror(errno));
    else
        rc = start(argv, input, out, errors, &pid, err);
    close_fd(&out[1]);
    close_fd(&errors[1]);
    if (rc == 0) {
        struct pollfd fds[2] = {{.fd = out[0], .events = POLLIN}, {.fd = errors[0], .events = POLLIN}};
        bool in_time = listen_to(fds, nodetime_monotonic_wall_ns() + time_ms * NS_PER_MS, taken, user, answer);
        answer->hung = !in_time;
        end(pid, in_time && fds[0].fd < 0, answer);
    }
    close_fd(&out[0]);
    close_fd(&errors[0]);
    return rc;
}
