#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

int file_read(const char *path, size_t limit, char **text, size_t *length, struct error *err)
{
    /* Without O_NONBLOCK the opening of a FIFO that nobody writes would never return. */
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fcntl(fd, F_SETFL, O_RDONLY) < 0) /* but data that a pipe's writer has yet to write is waited for */
        return error_set(err, errno, "cannot read '%s': %s", path, strerror(errno));
    return file_read_fd(fd, path, limit, text, length, err);
}

int file_read_fd(int fd, const char *name, size_t limit, char **text, size_t *length, struct error *err)
{
    CLEANUP(free_ptr) char *buffer = NULL;
    size_t used = 0, capacity = 0;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_set(err, errno, "cannot read '%s': %s", name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return error_set(err, EISDIR, "cannot read '%s': it is a directory", name);
    if (S_ISREG(st.st_mode) && (size_t)st.st_size > limit)
        return error_set(err, EFBIG, "'%s' is too large: %lld bytes, at most %zu are read", name, (long long)st.st_size,
                         limit);
    for (;;) {
        ssize_t count;
        array_reserve(buffer, capacity, used + 65536);
        count = read(fd, buffer + used, capacity - used - 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_set(err, errno, "cannot read '%s': %s", name, strerror(errno));
        if (count == 0)
            break;
        used += (size_t)count;
        if (used > limit)
            return error_set(err, EFBIG, "'%s' is too large: at most %zu bytes are read", name, limit);
    }
    buffer[used] = '\0';
    *length = used;
    *text = steal_ptr(&buffer);
    return 0;
}

static int replace(const char *path, const void *bytes, size_t length, int mode, bool sync, struct error *err)
{
    CLEANUP(free_ptr) char *temporary = xasprintf("%s.%d.tmp", path, (int)getpid());
    CLEANUP(close_fd) int fd = -1;
    const char *next = bytes;
    size_t left = length;

    unlink(temporary); /* of a process that was killed; O_EXCL: another's is not taken */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return error_set(err, errno, "cannot write '%s': %s", path, strerror(errno));
    while (left) {
        ssize_t count = write(fd, next, left);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            goto failed;
        next += count;
        left -= (size_t)count;
    }
    if ((sync && fsync(fd) < 0) || rename(temporary, path) < 0)
        goto failed;
    return 0;
failed : {
    int code = errno;
    unlink(temporary);
    return error_set(err, code, "cannot write '%s': %s", path, strerror(code));
}
}

int file_write_atomic(const char *path, const void *bytes, size_t length, int mode, struct error *err)
{
    return replace(path, bytes, length, mode, true, err);
}

int file_replace(const char *path, const void *bytes, size_t length, int mode, struct error *err)
{
    return replace(path, bytes, length, mode, false, err);
}

int file_make_dirs(const char *path, int mode, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(path);

    for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
        struct stat st;
        if (slash)
            *slash = '\0';
        if (mkdir(copy, (mode_t)mode) < 0 && (errno != EEXIST || stat(copy, &st) < 0 || !S_ISDIR(st.st_mode)))
            return error_set(err, errno, "cannot make the directory '%s': %s", copy, strerror(errno));
        if (!slash)
            return 0;
        *slash = '/';
    }
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    remove(path);
    return 0;
}

#define TREE_DESCRIPTORS 8

void file_remove_tree(const char *path)
{
    nftw(path, remove_entry, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

const char *file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

int file_in_memory(const char *name, const char *text)
{
    CLEANUP(close_fd) int fd = memfd_create(name, MFD_CLOEXEC);
    size_t length = strlen(text), written = 0;
    int made;

    while (fd >= 0 && written < length) {
        ssize_t count = write(fd, text + written, length - written);
        if (count < 0 && errno != EINTR)
            return -errno;
        written += count > 0 ? (size_t)count : 0;
    }
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    made = fd;
    fd = -1;
    return made;
}
