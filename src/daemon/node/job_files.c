#include "daemon/node/job_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

/* dcgm-exporter passes over files that are not named like a GPU. */
#define TEMPORARY ".carma-"

static bool is_named_like_gpu(const char *name)
{
    size_t number = strspn(name, "0123456789");
    size_t instance = name[number] == '.' ? strspn(name + number + 1, "0123456789") : 0;

    return number && (name[number] == '\0' || (instance && name[number + 1 + instance] == '\0'));
}

static bool is_among(const char *name, const struct job_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, files[i].name) == 0)
            return true;
    return false;
}

static bool has_text(int directory, const struct job_file *file)
{
    CLEANUP(close_fd) int fd = openat(directory, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    size_t length = strlen(file->text);
    char buffer[512];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != length)
        return false;
    for (size_t at = 0; at < length;) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got <= 0 || (size_t)got > length - at || memcmp(buffer, file->text + at, (size_t)got) != 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

static int write_whole(int fd, const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t put = write(fd, text, left);
        if (put < 0)
            return -errno;
        text += put;
        left -= (size_t)put;
    }
    return fchmod(fd, 0644) == 0 ? 0 : -errno; /* for every umask of carmad: other users are to read it */
}

/* Without a sync: a file lost with the machine's power is made anew at its start. */
static int replace(int directory, const struct job_file *file)
{
    char temporary[sizeof TEMPORARY + JOB_FILE_NAME];
    int status;

    snprintf(temporary, sizeof temporary, TEMPORARY "%s", file->name);
    unlinkat(directory, temporary, 0); /* of a carmad that was killed */
    {
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
        CLEANUP(close_fd) int fd = openat(directory, temporary, flags, 0600);
        status = fd < 0 ? -errno : write_whole(fd, file->text);
    }
    if (status == 0 && renameat(directory, temporary, directory, file->name) != 0)
        status = -errno;
    if (status != 0)
        unlinkat(directory, temporary, 0);
    return status;
}

static void note(int *first, int status, const char *directory, const char *name, const char *what, struct error *err)
{
    if (status != 0 && *first == 0)
        *first = error_set(err, status, "cannot %s '%s/%s': %s", what, directory, name, strerror(-status));
}

/* Files named like a GPU that belong to no GPU of the node or to one without a job. */
static void sweep(int fd, const char *directory, const struct job_file *files, size_t count, int *first,
                  struct error *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;

    if (!entries) {
        note(first, -errno, directory, "", "list", err);
        close_fd(&copy);
        return;
    }
    while ((entry = readdir(entries)))
        if (is_named_like_gpu(entry->d_name) && !is_among(entry->d_name, files, count) &&
            unlinkat(fd, entry->d_name, 0) != 0 && errno != ENOENT)
            note(first, -errno, directory, entry->d_name, "remove", err);
    closedir(entries);
}

int job_files_set(const char *directory, const struct job_file *files, size_t count, struct error *err)
{
    int first = file_make_dirs(directory, 0755, err);
    CLEANUP(close_fd) int fd = first ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (first)
        return first;
    if (fd < 0)
        return error_set(err, errno, "cannot open '%s': %s", directory,
                         errno == ELOOP || errno == ENOTDIR ? "it must be a directory, and no symbolic link"
                                                            : strerror(errno));
    for (size_t i = 0; i < count; i++)
        if (!has_text(fd, &files[i]))
            note(&first, replace(fd, &files[i]), directory, files[i].name, "write", err);
    sweep(fd, directory, files, count, &first, err);
    return first;
}
