#include "launch/spawn_shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/handed.h"
#include "base/memory.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "launch/cgroup/cgroup.h"
#include "launch/request.h"

#define END_WAIT_MS 1000

static struct launch_begun waiting = {.fd = -1}; /* shepherd 0: none waits */
static char *directory_waiting;                  /* owned; where it does */

static int spawn(const char *program, int fd, const char *directory, pid_t *pid)
{
    char *arguments[] = {(char[]){"carma-shepherd"}, NULL};
    CLEANUP(free_ptr) char *log = xasprintf("%s/shepherd.log", directory);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t blocked, all;
    int code;

    sigemptyset(&blocked); /* the shepherd reads this signal: a stop request that is early must wait, not kill it */
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGCHLD);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, REQUEST_FD);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_addopen(&actions, DIRECTORY_FD, directory, O_RDONLY | O_DIRECTORY, 0);
    code = posix_spawn(pid, program, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code;
}

static int make_directory(const char *runs, const char *directory, struct error *err)
{
    CLEANUP(free_ptr) char *no_mps = xasprintf("%s/" SPAWN_NO_MPS, directory);
    int code = file_make_dirs(runs, 0700, err);

    if (code < 0)
        return code;
    file_remove_tree(directory); /* of a daemon that was killed */
    if (mkdir(directory, 0700) < 0 || mkdir(no_mps, 0700) < 0)
        return error_set(err, errno, "cannot make the run directory '%s': %s", directory, strerror(errno));
    return 0;
}

/* The base, which may be empty, and the mounts, each with its NUL. */
static int send_place(int fd)
{
    const struct cgroup_place *place = cgroup_place();
    CLEANUP(strbuf_release) struct strbuf text = {0};

    strbuf_append(&text, place->base ? place->base : "", place->base ? strlen(place->base) + 1 : 1);
    strbuf_append(&text, place->mounts, strlen(place->mounts) + 1);
    return send(fd, text.text, text.length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int spawn_await_place(int fd)
{
    ssize_t length = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
    CLEANUP(free_ptr) char *text = length > 0 ? xcalloc(1, (size_t)length + 2) : NULL;
    const char *mounts;

    if (!text)
        return length < 0 ? -errno : -EPIPE;
    if (recv(fd, text, (size_t)length, 0) < 0)
        return -errno;
    mounts = text + strlen(text) + 1;
    cgroup_place_is(mounts, *text ? text : NULL);
    return 0;
}

static int start_waiting(const char *program, const char *runs, struct error *err)
{
    CLEANUP(close_fd) int theirs = -1;
    CLEANUP(close_fd) int high = -1;
    struct proc_stat stat;
    int fds[2], code;

    directory_waiting = xasprintf("%s/next", runs);
    if ((code = make_directory(runs, directory_waiting, err)) < 0)
        return code;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return error_set(err, errno, "cannot make a socket for a shepherd: %s", strerror(errno));
    waiting.fd = fds[0];
    theirs = fds[1];
    high = fcntl(theirs, F_DUPFD_CLOEXEC, DIRECTORY_FD + 1); /* above those that the shepherd's own take */
    code = high < 0 ? errno : -send_place(waiting.fd);
    if (code == 0)
        code = spawn(program, high, directory_waiting, &waiting.shepherd);
    if (code) {
        waiting.shepherd = 0;
        return error_set(err, code, "cannot start the shepherd '%s': %s", program, strerror(code));
    }
    code =
        proc_read_stat(waiting.shepherd, &stat); /* our child: it is there until we reap it, even when it has ended */
    if (code < 0)
        return error_set(err, code, "cannot read /proc/%d/stat of a shepherd: %s: is /proc mounted?",
                         (int)waiting.shepherd, strerror(-code));
    waiting.start_ticks = stat.start_ticks;
    return 0;
}

int spawn_prepare(const char *program, const char *runs, struct error *err)
{
    int code = waiting.shepherd ? 0 : start_waiting(program, runs, err);

    if (code < 0)
        spawn_unprepare();
    return code;
}

pid_t spawn_waiting(void)
{
    return waiting.shepherd;
}

void spawn_unprepare(void)
{
    if (waiting.shepherd)
        spawn_end(&waiting);
    waiting.shepherd = 0;
    if (directory_waiting)
        file_remove_tree(directory_waiting);
    free_ptr(&directory_waiting);
    close_fd(&waiting.fd);
}

void spawn_end(struct launch_begun *begun)
{
    close_fd(&begun->fd);
    begun->fd = -1;
    for (int ms = 0; ms < END_WAIT_MS && launch_alive(begun->shepherd, begun->start_ticks); ms++)
        poll(NULL, 0, 1);
    if (launch_alive(begun->shepherd, begun->start_ticks)) {
        kill(begun->shepherd, SIGKILL); /* it was stopped; the job, which waits, goes with it */
        waitpid(begun->shepherd, NULL, 0);
    }
}

int spawn_hand(int fd, int request_fd, int filter)
{
    const int handed[] = {request_fd, filter};

    return handed_send(fd, "r", 1, handed, filter < 0 ? 1 : 2, MSG_DONTWAIT);
}

static int hand_over(const char *run_directory, int request_fd, int filter, struct error *err)
{
    int code;

    if (rename(directory_waiting, run_directory) < 0)
        return error_set(err, errno, "cannot make the run directory '%s': %s", run_directory, strerror(errno));
    code = spawn_hand(waiting.fd, request_fd, filter);
    if (code < 0)
        file_remove_tree(run_directory); /* a launch that failed leaves nothing that looks like one */
    /* The shepherd ended as soon as it began, as on a full disk. The job did not cause that, and it may pass. */
    if (code == -ECONNRESET || code == -EPIPE)
        return error_set(err, EAGAIN, "cannot hand a job to its shepherd, which has ended: is the disk of %s full?",
                         run_directory);
    return code < 0 ? error_set(err, code, "cannot hand a job to its shepherd: %s", strerror(-code)) : 0;
}

int spawn_shepherd(const char *program, const char *run_directory, int request_fd, int filter,
                   struct launch_begun *begun, struct error *err)
{
    CLEANUP(free_ptr) char *runs = xstrndup(run_directory, (size_t)(strrchr(run_directory, '/') - run_directory));
    int code = waiting.shepherd ? hand_over(run_directory, request_fd, filter, err) : -ESRCH;

    if (code < 0) { /* none waits, or somebody has killed it or removed its directory */
        spawn_unprepare();
        if ((code = spawn_prepare(program, runs, err)) < 0 ||
            (code = hand_over(run_directory, request_fd, filter, err)) < 0)
            return code;
    }
    *begun = waiting;
    waiting = (struct launch_begun){.fd = -1};
    free_ptr(&directory_waiting);
    return 0;
}

int spawn_await(int fd, int *filter)
{
    int handed[2];
    char byte;
    ssize_t count = handed_receive(fd, &byte, 1, handed, array_size(handed), 0);

    *filter = handed[1];
    if (count <= 0)
        return count < 0 ? -errno : -EPIPE;
    return handed[0] < 0 ? -EPROTO : handed[0];
}

bool spawn_await_go(int fd)
{
    char byte;

    return recv(fd, &byte, 1, 0) == 1;
}
