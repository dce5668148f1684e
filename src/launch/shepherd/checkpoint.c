#include "launch/shepherd/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/trust/guarded.h"
#include "base/memory.h"
#include "launch/shepherd/child.h"

#define REMOVE_LIMIT_MS 10000 /* a network's file system may never answer */

char *checkpoint_path(const struct shepherd_request *request)
{
    return xasprintf("%s/carma-%" PRIu64 ".ckpt", request->directory, request->job);
}

/* It may be of the launch before; but anybody can make the next job's in a directory that he may write, and put a file
 * there that runs as the job's user when it is loaded. */
static int check_existing(const char *name, const char *path, struct error *err)
{
    CLEANUP(close_fd) int fd = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct error why;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, errno, "cannot look at the checkpoint directory '%s': %s", path, strerror(errno));
    if ((st.st_uid != geteuid() || S_ISDIR(st.st_mode)) && guarded_check_own(fd, &why) < 0)
        return error_set(err, EPERM, "the checkpoint directory '%s' is there, and not safe: %s", path, why.text);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, EEXIST,
                         "cannot make the checkpoint directory '%s': a file of that name is there: submit from a "
                         "directory in which you may write",
                         path);
    return 0;
}

int checkpoint_make(const struct shepherd_request *request, struct error *err)
{
    CLEANUP(free_ptr) char *path = checkpoint_path(request);
    const char *name = strrchr(path, '/') + 1; /* the caller is in the job's directory */
    int code = mkdir(name, 0755) == 0 ? 0 : errno;

    if (code == 0)
        return 0;
    if (code == EEXIST)
        return check_existing(name, path, err);
    return error_set(
        err, code == EPERM ? EACCES : code, "cannot make the checkpoint directory '%s': %s: %s", path, strerror(code),
        code == ENOSPC || code == EDQUOT ? "free some space" : "submit from a directory in which you may write");
}

/* In a child, which becomes the user and may hang there without the shepherd. */
void checkpoint_remove_empty(const struct shepherd_request *request)
{
    CLEANUP(free_ptr) char *path = checkpoint_path(request);
    struct pollfd ended;
    int pipe[2]; /* that hangs up when the child ends */
    bool hangs;
    pid_t pid;

    if (pipe2(pipe, O_CLOEXEC) < 0)
        return;
    pid = fork();
    if (pid == 0) {
        if (child_become_user(request, NULL) == 0)
            rmdir(path); /* refused where something is in it */
        _exit(0);
    }
    close(pipe[1]);
    if (pid > 0) {
        ended = (struct pollfd){.fd = pipe[0], .events = POLLIN};
        hangs = poll(&ended, 1, REMOVE_LIMIT_MS) != 1;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, hangs ? WNOHANG : 0);
    }
    close(pipe[0]);
}
