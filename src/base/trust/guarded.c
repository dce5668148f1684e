/* A walk holds the directory that it has come to, and the text that is still to be walked. A link is opened, not
 * followed: its owner and its text are those of one inode, and the text goes before the rest. */
#include "base/trust/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define MOST_LINKS 40 /* as the kernel */

#define OTHERS_MAY_WRITE (S_IWGRP | S_IWOTH)

struct walk {
    int directory;
    bool enters; /* a directory is entered, not a file written */
    unsigned links;
    char *rest; /* owned; at its end the last name, which is no link */
};

static void walk_end(struct walk *walk)
{
    close_fd(&walk->directory);
    free(walk->rest);
}

static bool is_trusted(uid_t uid)
{
    return uid == geteuid() || uid == 0;
}

static bool others_can_write(const struct stat *directory)
{
    return directory->st_mode & OTHERS_MAY_WRITE || !is_trusted(directory->st_uid);
}

static int failed(struct error *err)
{
    return error_set(err, errno, "%s", strerror(errno));
}

static int check_link(const struct walk *walk, const struct stat *link, const char *name, struct error *err)
{
    struct stat directory;

    if (fstat(walk->directory, &directory) < 0)
        return failed(err);
    if (is_trusted(link->st_uid) || !others_can_write(&directory))
        return 0;
    if (walk->enters && !(directory.st_mode & OTHERS_MAY_WRITE) && link->st_uid == directory.st_uid)
        return 0;
    return error_set(err, EPERM,
                     "its part '%.100s' is a symbolic link of uid %u, in a directory that others can write: remove it, "
                     "or choose another place",
                     name, (unsigned)link->st_uid);
}

static int go_to_root(struct walk *walk, const char *path)
{
    close_fd(&walk->directory);
    walk->directory = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return walk->directory < 0 ? -1 : 0;
}

/* Puts the link's text in the place of its name; `behind` is the text behind that. */
static int take_link(struct walk *walk, int link, const char *behind, struct error *err)
{
    char text[PATH_MAX];
    ssize_t length = readlinkat(link, "", text, sizeof text - 1);
    char *rest;

    if (length < 0)
        return failed(err);
    if (++walk->links > MOST_LINKS)
        return error_set(err, ELOOP, "%s", strerror(ELOOP));
    text[length] = '\0';
    rest = xasprintf("%s%s", text, behind);
    free(walk->rest);
    walk->rest = rest;
    return *text == '/' && go_to_root(walk, text) < 0 ? failed(err) : 0;
}

/* One name further. 1: `rest` is the last one, which is no link or not there. */
static int walk_step(struct walk *walk, struct error *err)
{
    const char *name = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(name, "/");
    const char *behind = name + length;
    bool is_last = behind[strspn(behind, "/")] == '\0';
    CLEANUP(free_ptr) char *one = length ? xstrndup(name, length) : xstrdup(".");
    CLEANUP(free_ptr) char *left = xstrdup(behind);
    CLEANUP(close_fd) int fd = -1;
    struct stat st;
    int rc;

    if (!is_last) { /* O_DIRECTORY: an automounter's directory is mounted by it, and not by O_PATH alone */
        fd = openat(walk->directory, one, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            close_fd(&walk->directory);
            walk->directory = fd;
            fd = -1;
            free(walk->rest);
            walk->rest = steal_ptr(&left);
            return 0;
        }
        if (errno != ENOTDIR && errno != ELOOP)
            return failed(err);
    }
    fd = openat(walk->directory, one, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if ((fd < 0 && (!is_last || errno != ENOENT)) || (fd >= 0 && fstat(fd, &st) < 0))
        return failed(err);
    if (fd >= 0 && S_ISLNK(st.st_mode)) {
        rc = check_link(walk, &st, one, err);
        return rc ? rc : take_link(walk, fd, left, err);
    }
    if (!is_last)
        return error_set(err, ENOTDIR, "%s", strerror(ENOTDIR));
    free(walk->rest);
    walk->rest = steal_ptr(&one);
    return 1;
}

static int walk_to(struct walk *walk, const char *path, struct error *err)
{
    int rc = *path ? 0 : error_set(err, ENOENT, "%s", strerror(ENOENT));

    walk->directory = -1;
    walk->rest = xstrdup(path);
    if (!rc && go_to_root(walk, path) < 0)
        rc = failed(err);
    while (rc == 0)
        rc = walk_step(walk, err);
    return rc < 0 ? rc : 0;
}

static int check_file(const struct walk *walk, const struct stat *file, struct error *err)
{
    struct stat directory;

    if (!is_trusted(file->st_uid))
        return error_set(err, EPERM, "it belongs to uid %u: remove it, or name another file", (unsigned)file->st_uid);
    if (!S_ISREG(file->st_mode) || file->st_nlink < 2)
        return 0;
    if (fstat(walk->directory, &directory) < 0)
        return failed(err);
    return others_can_write(&directory)
               ? error_set(err, EPERM,
                           "it has a second name (hard link), in a directory that others can write: remove it, or name "
                           "another file")
               : 0;
}

int guarded_open(const char *path, int flags, mode_t mode, struct error *err)
{
    CLEANUP(walk_end) struct walk walk = {.enters = false};
    CLEANUP(close_fd) int fd = -1;
    struct stat st;
    int rc = walk_to(&walk, path, err);
    bool existed;

    if (rc)
        return rc;
    existed = fstatat(walk.directory, walk.rest, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (existed && (rc = check_file(&walk, &st, err)))
        return rc;
    /* O_EXCL: a new file is the caller's, whatever owner the file system gives it */
    fd = openat(walk.directory, walk.rest,
                (flags & ~O_TRUNC) | (flags & O_CREAT && !existed ? O_EXCL : 0) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                mode);
    if (fd < 0 || fstat(fd, &st) < 0)
        return failed(err);
    if (existed && (rc = check_file(&walk, &st, err))) /* another may have come into its place */
        return rc;
    if (flags & O_TRUNC && S_ISREG(st.st_mode) && st.st_size && ftruncate(fd, 0) < 0)
        return failed(err);
    rc = fd;
    fd = -1;
    return rc;
}

FILE *guarded_fopen(const char *path, struct error *err)
{
    int fd = guarded_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666, err);

    return fd < 0 ? NULL : fdopen(fd, "w");
}

int guarded_directory(const char *path, int flags, struct error *err)
{
    CLEANUP(walk_end) struct walk walk = {.enters = true};
    int rc = walk_to(&walk, path, err), fd;

    if (rc)
        return rc;
    fd = openat(walk.directory, walk.rest, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? failed(err) : fd;
}

int guarded_check_own(int fd, struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return failed(err);
    if (st.st_uid != geteuid())
        return error_set(err, EPERM, "it belongs to uid %u: remove it, or choose another place", (unsigned)st.st_uid);
    if (st.st_mode & OTHERS_MAY_WRITE)
        return error_set(err, EPERM, "others may write it (mode %04o): chmod go-w it", (unsigned)st.st_mode & 07777);
    return 0;
}

int guarded_own_directory(const char *path, mode_t mode, struct error *err)
{
    CLEANUP(close_fd) int fd = guarded_directory(path, O_RDONLY, err);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return failed(err);
    if (st.st_uid != geteuid())
        return error_set(err, EPERM, "it belongs to uid %u: remove it", (unsigned)st.st_uid);
    return fchmod(fd, mode) < 0 ? failed(err) : 0;
}
