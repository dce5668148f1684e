#include "daemon/engine/copied.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/handle.h"
#include "base/kernel/calls.h"
#include "base/memory.h"

#define NICE 5 /* the loop goes first; but while the copy lives, the kernel copies pages that the loop writes to */

struct copied {
    pid_t pid; /* 0: reaped */
    int fd;
    int end_fd;     /* readable when it has ended: nothing is written there */
    uv_poll_t *end; /* of that */
    void (*ended)(bool whole, int fd, void *user);
    void *user;
};

/* Malloc's locks are free in it (glibc); other threads' locks may be held for ever, so nothing else is called. */
__attribute__((noreturn)) static void be_the_copy(pid_t parent, int fd, int end_fd, int (*work)(int fd, void *user),
                                                  void *user)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    if (getppid() != parent || dup2(fd, STDIN_FILENO) < 0 || dup2(end_fd, STDOUT_FILENO) < 0 ||
        kernel_close_from(STDERR_FILENO + 1, 0) != 0)
        _exit(1);
    _exit(work(STDIN_FILENO, user) == 0 ? 0 : 1);
}

static bool reap(struct copied *copied)
{
    int status = -1;
    pid_t reaped = copied->pid ? waitpid(copied->pid, &status, 0) : -1;

    copied->pid = 0;
    return reaped > 0 && status == 0;
}

static void on_end(uv_poll_t *poll, int status, int events)
{
    struct copied *copied = poll->data;
    bool whole;

    (void)status;
    (void)events;
    uv_poll_stop(poll);
    whole = reap(copied) && lseek(copied->fd, 0, SEEK_SET) == 0;
    copied->ended(whole, copied->fd, copied->user);
}

struct copied *copied_begin(uv_loop_t *loop, int (*work)(int fd, void *user),
                            void (*ended)(bool whole, int fd, void *user), void *user)
{
    CLEANUP(close_fd) int fd = memfd_create("carmad-snapshot", MFD_CLOEXEC);
    int end[2];
    sigset_t all, before;
    pid_t parent = getpid(), pid;
    struct copied *copied;

    if (fd < 0 || pipe2(end, O_CLOEXEC) < 0)
        return NULL;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0)
        be_the_copy(parent, fd, end[1], work, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(end[1]);
    if (pid < 0) {
        close(end[0]);
        return NULL;
    }
    copied = xmalloc(sizeof *copied);
    *copied = (struct copied){.pid = pid, .fd = fd, .end_fd = end[0], .ended = ended, .user = user};
    fd = -1;
    copied->end = xmalloc(sizeof *copied->end);
    uv_poll_init(loop, copied->end, copied->end_fd);
    copied->end->data = copied;
    uv_poll_start(copied->end, UV_READABLE | UV_DISCONNECT, on_end);
    return copied;
}

void copied_free(struct copied *copied)
{
    if (!copied)
        return;
    if (copied->pid)
        kill(copied->pid, SIGKILL);
    reap(copied);
    uv_poll_stop(copied->end);
    uv_close((uv_handle_t *)copied->end, free_handle);
    close_fd(&copied->end_fd);
    close_fd(&copied->fd);
    free(copied);
}
