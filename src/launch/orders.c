#include "launch/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launch/tree.h"

char *orders_file(const char *run_directory)
{
    return xasprintf("%s/orders", run_directory);
}

int orders_add(const char *run_directory, pid_t shepherd, uint64_t start_ticks, const char *order, struct error *err)
{
    CLEANUP(free_ptr) char *path = orders_file(run_directory);
    CLEANUP(free_ptr) char *line = xasprintf("%s\n", order);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t written;
    int code;

    if (fd < 0)
        return error_set(err, errno, "cannot open '%s': %s", path, strerror(errno));
    if (lseek(fd, 0, SEEK_END) >= ORDERS_LIMIT) {
        close(fd);
        return error_set(err, EFBIG, "'%s' is full: the job was told too much", path);
    }
    written = write(fd, line, strlen(line));
    code = written < 0 ? -errno : written < (ssize_t)strlen(line) ? -ENOSPC : 0;
    close(fd);
    if (code < 0)
        return error_set(err, -code, "cannot write '%s': %s", path, strerror(-code));
    code = tree_signal_one(shepherd, start_ticks, SIGUSR1);
    return code < 0 ? error_set(err, -code, "cannot wake shepherd %d: %s", (int)shepherd, strerror(-code)) : 0;
}

bool orders_owner_is_heard_out(const char *run_directory)
{
    CLEANUP(free_ptr) char *path = orders_file(run_directory);
    struct stat st;

    return stat(path, &st) == 0 && st.st_size >= ORDERS_OF_OWNER;
}
