/* One daemon per state. The lock belongs to the open file, so it goes with the process however that ends, and a child
 * that execs does not keep it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_internal.h"

static int refuse(const char *directory, int fd, struct error *err)
{
    char text[32] = "";
    ssize_t length = pread(fd, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    text[strspn(text, "0123456789")] = '\0';
    return error_set(err, EBUSY, "%s: another carmad uses this state (pid %s): stop it, or give this one its own",
                     directory, text[0] ? text : "unknown");
}

int store_lock(const char *directory, int *lock_fd, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/lock", directory);
    CLEANUP(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char text[32];
    int length;

    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return refuse(directory, fd, err);
        return error_set(err, errno, "%s: cannot be locked: %s", path, strerror(errno));
    }
    length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)length, 0) != length)
        return error_set(err, errno ? errno : EIO, "%s: cannot be written: %s", path, strerror(errno));
    *lock_fd = fd;
    fd = -1;
    return 0;
}
