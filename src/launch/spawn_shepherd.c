#include "launch/spawn_shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "launch/request.h"

extern char **environ;

static struct {
    pid_t pid; /* 0: none waits */
    int fd;    /* our end */
} waiting = {.fd = -1};

static int spawn(const char *program, int request_fd, const char *log, pid_t *pid)
{
    char *arguments[] = {(char[]){"carma-shepherd"}, NULL};
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
    posix_spawn_file_actions_adddup2(&actions, request_fd, REQUEST_FD);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    code = posix_spawn(pid, program, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code;
}

pid_t spawn_prepare(const char *program)
{
    CLEANUP(close_fd) int theirs = -1;
    CLEANUP(close_fd) int high = -1;
    int fds[2];

    if (waiting.pid || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return waiting.pid;
    waiting.fd = fds[0];
    theirs = fds[1];
    high = fcntl(theirs, F_DUPFD_CLOEXEC, REQUEST_FD + 1); /* above those that the shepherd's own take */
    if (high < 0 || spawn(program, high, "/dev/null", &waiting.pid) != 0) {
        waiting.pid = 0;
        close_fd(&waiting.fd);
    }
    return waiting.pid;
}

void spawn_unprepare(void)
{
    if (!waiting.pid)
        return;
    close_fd(&waiting.fd);
    kill(waiting.pid, SIGKILL); /* it has nothing */
    waitpid(waiting.pid, NULL, 0);
    waiting.pid = 0;
}

static int hand_over(int request_fd, const char *log)
{
    CLEANUP(close_fd) int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int handed[] = {request_fd, log_fd};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof handed)];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof handed), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = (char[]){"r"}, .iov_len = 1};
    const struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

    memcpy(CMSG_DATA(&control.head), handed, sizeof handed);
    return log_fd < 0 || sendmsg(waiting.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int spawn_shepherd(const char *program, int request_fd, const char *log, pid_t *pid)
{
    if (!waiting.pid)
        return spawn(program, request_fd, log, pid);
    if (hand_over(request_fd, log) < 0) { /* somebody has killed it */
        spawn_unprepare();
        return spawn(program, request_fd, log, pid);
    }
    *pid = waiting.pid;
    waiting.pid = 0;
    close_fd(&waiting.fd);
    return 0;
}

int spawn_await(int fd)
{
    int handed[2];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof handed)];
    } control;
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const struct cmsghdr *head;
    int code = 0;

    if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) <= 0)
        return -EPIPE;
    head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof handed))
        return -EPROTO;
    memcpy(handed, CMSG_DATA(head), sizeof handed);
    if (dup2(handed[0], fd) < 0 || dup2(handed[1], STDERR_FILENO) < 0)
        code = -errno;
    close(handed[0]);
    close(handed[1]);
    return code;
}
