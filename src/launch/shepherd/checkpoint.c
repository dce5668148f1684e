#include "launch/shepherd/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "launch/shepherd/child.h"

#define REMOVE_LIMIT_MS 10000 /* a network's file system may never answer */

char *checkpoint_path(const struct request *request)
{
    return xasprintf("%s/carma-%" PRIu64 ".ckpt", request->directory, request->job);
}

int checkpoint_make(const struct request *request, struct error *err)
{
    CLEANUP(free_ptr) char *path = checkpoint_path(request);
    struct stat st;
    int code = mkdir(path, 0777) == 0 ? 0 : errno;

    if (code == 0 || (code == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return error_set(err, code,
                     "cannot make the checkpoint directory '%s': %s: submit from a directory in which you may write",
                     path, code == EEXIST ? "a file of that name is there" : strerror(code));
}

/* In a child, which becomes the user and may hang there without the shepherd. */
void checkpoint_remove_empty(const struct request *request)
{
    CLEANUP(free_ptr) char *path = checkpoint_path(request);
    CLEANUP(close_fd) int fd = -1;
    struct pollfd ended;
    pid_t pid = fork();

    if (pid == 0) {
        if (child_become_user(request, NULL) == 0)
            rmdir(path); /* refused where something is in it */
        _exit(0);
    }
    if (pid < 0)
        return;
    fd = pidfd_open(pid, 0);
    ended = (struct pollfd){.fd = fd, .events = POLLIN};
    poll(&ended, 1, REMOVE_LIMIT_MS);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, WNOHANG);
}
