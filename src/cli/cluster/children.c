#include "cli/cluster/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"

#define TURN_MS  100 /* a child that ends while another process keeps its pipe open is noticed after so long */
#define ENDED_MS 2   /* as is the end of one that has closed its output */
#define DYING_MS 200

void child_release(struct child *child)
{
    strbuf_release(&child->out);
    strbuf_release(&child->errors);
}

static int spawn(struct child *child, const int theirs[2])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int rc;

    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none); /* threads of ours block signals */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, theirs[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs[1], STDERR_FILENO);
    rc = posix_spawnp(&child->pid, child->argv[0], &actions, &attributes, (char *const *)child->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

/* False: it cannot be started. */
static bool start(struct child *child, int64_t time_ms)
{
    int theirs[2] = {-1, -1}, rc = 0;

    child->fds[0] = child->fds[1] = -1;
    for (int i = 0; i < 2 && !rc; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0) {
            rc = errno;
            break;
        }
        child->fds[i] = ends[0];
        theirs[i] = ends[1];
        if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
            rc = errno;
    }
    if (!rc)
        rc = spawn(child, theirs);
    close_fd(&theirs[0]);
    close_fd(&theirs[1]);
    child->deadline_ns = nodetime_monotonic_wall_ns() + time_ms * NS_PER_MS;
    if (!rc)
        return true;
    close_fd(&child->fds[0]);
    close_fd(&child->fds[1]);
    child->pid = 0;
    child->end = CHILD_NOT_STARTED;
    child->status = rc;
    return false;
}

/* Takes all that is in the pipe now; bytes over the limit are dropped. */
static void take(int *fd, struct strbuf *into, size_t limit)
{
    char block[65536];
    ssize_t count = *fd < 0 ? 0 : read(*fd, block, sizeof block);

    for (; count > 0; count = read(*fd, block, sizeof block)) {
        size_t room = limit - into->length;
        if (!room)
            return;
        strbuf_append(into, block, (size_t)count < room ? (size_t)count : room);
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR))
        close_fd(fd);
}

static void finish(struct child *child, enum child_end end)
{
    int64_t until_ns = nodetime_monotonic_wall_ns() + DYING_MS * NS_PER_MS;

    if (end != CHILD_ENDED) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, WNOHANG) == 0 && nodetime_monotonic_wall_ns() < until_ns)
            poll(NULL, 0, 1);
    }
    close_fd(&child->fds[0]);
    close_fd(&child->fds[1]);
    child->end = end;
    child->pid = 0;
}

/* True: it is over. Its end is told by the process, not by its pipes: ssh may leave one behind that holds them. */
static bool look_at(struct child *child)
{
    pid_t ended = waitpid(child->pid, &child->status, WNOHANG);

    take(&child->fds[0], &child->out, CHILD_OUT_LIMIT);
    take(&child->fds[1], &child->errors, CHILD_ERRORS_LIMIT);
    if (child->out.length >= CHILD_OUT_LIMIT)
        finish(child, CHILD_TALKS_TOO_MUCH);
    else if (ended)
        finish(child, CHILD_ENDED);
    else if (nodetime_monotonic_wall_ns() >= child->deadline_ns)
        finish(child, CHILD_LATE);
    return !child->pid;
}

static void wait_for_any(const struct child *children, size_t count)
{
    struct pollfd fds[2 * CHILDREN_AT_ONCE];
    int64_t now_ns = nodetime_monotonic_wall_ns(), wait_ms = TURN_MS;
    size_t used = 0;

    for (const struct child *child = children; child < children + count; child++) {
        int64_t left_ms = (child->deadline_ns - now_ns) / NS_PER_MS + 1;
        if (!child->pid)
            continue;
        if (left_ms < wait_ms)
            wait_ms = left_ms > 0 ? left_ms : 0;
        if (child->fds[0] < 0)
            wait_ms = ENDED_MS;
        for (int i = 0; i < 2; i++)
            if (child->fds[i] >= 0 && (i == 0 || child->errors.length < CHILD_ERRORS_LIMIT))
                fds[used++] = (struct pollfd){.fd = child->fds[i], .events = POLLIN};
    }
    poll(fds, used, (int)wait_ms);
}

void children_run(struct child *children, size_t count, int64_t time_ms)
{
    size_t begun = 0, running = 0;

    while (begun < count || running) {
        while (begun < count && running < CHILDREN_AT_ONCE)
            running += start(&children[begun++], time_ms);
        wait_for_any(children, begun);
        for (size_t i = 0; i < begun; i++)
            if (children[i].pid && look_at(&children[i]))
                running--;
    }
}
