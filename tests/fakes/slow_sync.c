/* Preloaded into carmad: syncs of the store take a second of the wall's clock, each noted in $SLOW_SYNC_LOG. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int wait_and_sync(const char *name, int fd)
{
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *path = getenv("SLOW_SYNC_LOG");
    int log =
        path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1; /* not made: it is there once disks are to be slow */

    if (log >= 0) {
        if (write(log, "s", 1) == 1)
            sleep(1);
        close(log);
    }
    return sync(fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    return wait_and_sync("fsync", fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    return wait_and_sync("fdatasync", fd);
}
