/* One daemon per state. The lock belongs to the open file, so it goes with the process however that ends, and a child
 * that execs does not keep it. A child that its daemon's death found between fork and exec does so until it execs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_internal.h"

#define ORPHAN_WAIT_MS 5000 /* for a child to exec or end, on however busy a machine */
#define ORPHAN_POLL_MS 10

/* The process that wrote itself into the lock file; 0: none has. */
static pid_t holder(int fd)
{
    char text[32] = "";
    ssize_t length = pread(fd, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return (pid_t)strtol(text, NULL, 10);
}

static bool is_gone(pid_t pid)
{
    return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

/* 0, or flock()'s errno. */
static int take(int fd)
{
    for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_ms += ORPHAN_POLL_MS) {
        int code = errno;
        if (code != EWOULDBLOCK || waited_ms >= ORPHAN_WAIT_MS || !is_gone(holder(fd)))
            return code;
        usleep(ORPHAN_POLL_MS * 1000);
    }
    return 0;
}

/* File systems that lock no directory (NFS) go without. */
int store_lock_directory(const char *directory, int *fd, struct error *err)
{
    *fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    for (int waited_ms = 0; flock(*fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; waited_ms += ORPHAN_POLL_MS) {
        if (waited_ms >= ORPHAN_WAIT_MS)
            return error_set(err, EBUSY, "%s: another carmad uses this state: stop it, or give this one its own",
                             directory);
        usleep(ORPHAN_POLL_MS * 1000);
    }
    return 0;
}

int store_lock(const char *directory, int *lock_fd, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/lock", directory);
    CLEANUP(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char text[32];
    int length, code;

    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    code = take(fd);
    if (code == EWOULDBLOCK)
        return error_set(err, EBUSY, "%s: another carmad uses this state (pid %d): stop it, or give this one its own",
                         directory, (int)holder(fd));
    if (code)
        return error_set(err, code, "%s: cannot be locked: %s", path, strerror(code));
    length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)length, 0) != length)
        return error_set(err, errno ? errno : EIO, "%s: cannot be written: %s", path, strerror(errno));
    *lock_fd = fd;
    fd = -1;
    return 0;
}
