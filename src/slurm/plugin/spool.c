#include "slurm/plugin/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slurm/plugin/http.h"

/* Made by the agent alone: where it has never been, carma gives no GPUs (step.h). */
static int open_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

/* Whole or not at all: the agent sees names without a leading dot only. */
static int write_file(const char *folder, const char *name, const char *bytes, bool sync)
{
    int dir = open_folder(folder);
    if (dir < 0)
        return dir;
    char draft[80];
    snprintf(draft, sizeof(draft), ".%s.%d", name, (int)getpid());
    int fd = openat(dir, draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = fd < 0 ? -errno : 0;
    if (fd >= 0) {
        size_t length = strlen(bytes);
        if (write(fd, bytes, length) != (ssize_t)length || (sync && fsync(fd) != 0))
            code = errno != 0 ? -errno : -EIO;
        close(fd);
    }
    if (code == 0 && renameat(dir, draft, dir, name) != 0)
        code = -errno;
    if (code == 0 && sync && fsync(dir) != 0)
        code = -errno;
    if (code != 0)
        unlinkat(dir, draft, 0);
    close(dir);
    return code;
}

int spool_order(const char *folder, uint32_t job, uint32_t restart, const char *what, const char *lines)
{
    char name[64];
    snprintf(name, sizeof(name), "%u.%u.%s", job, restart, what);
    return write_file(folder, name, lines, true);
}

bool spool_await(const char *folder, uint32_t job, uint32_t restart, const char *what, int64_t deadline_ms)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%u.%u.%s", folder, job, restart, what);
    while (access(path, F_OK) == 0) {
        if (http_now_ms() >= deadline_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return true;
}

int spool_put(const char *folder, uint32_t job, const char *name, int64_t value)
{
    char file[64], text[32];
    snprintf(file, sizeof(file), "%u.%s", job, name);
    snprintf(text, sizeof(text), "%lld\n", (long long)value);
    return write_file(folder, file, text, false);
}

bool spool_put_text(const char *folder, uint32_t job, const char *name, const char *text)
{
    char file[64];
    snprintf(file, sizeof(file), "%u.%s", job, name);
    return write_file(folder, file, text, false) == 0;
}

bool spool_get_text(const char *folder, uint32_t job, const char *name, char *text, size_t size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%u.%s", folder, job, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return true;
}

bool spool_get(const char *folder, uint32_t job, const char *name, int64_t *value)
{
    char text[32], *end;
    if (!spool_get_text(folder, job, name, text, sizeof(text)))
        return false;
    *value = strtoll(text, &end, 10);
    return end > text;
}

void spool_forget(const char *folder, uint32_t job, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%u.%s", folder, job, name);
    unlink(path);
}
