#include "notify/hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "notify/run.h"

#define HOOK_NS (30 * NS_PER_SEC)

/* Not hidden, and not what an editor or a package manager leaves behind. */
static int is_hook(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !strpbrk(entry->d_name, "~#.");
}

bool hooks_any(const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_hook, alphasort);

    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count > 0;
}

static bool is_ours(const struct stat *st)
{
    return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Who could write it, or its directory, would have our rights. */
static int check(int directory, const char *name, struct error *err)
{
    struct stat st;

    if (fstat(directory, &st) < 0 || !is_ours(&st))
        return error_set(err, EPERM, "not run: others can write its directory");
    if (fstatat(directory, name, &st, 0) < 0)
        return error_set(err, errno, "not run: %s", strerror(errno));
    if (!S_ISREG(st.st_mode) || !is_ours(&st))
        return error_set(err, EPERM, "not run: it is no file that only root can write");
    return st.st_mode & S_IXUSR ? 0 : error_set(err, EACCES, "not run: it is not executable (chmod +x)");
}

void hooks_run(const char *directory, const json_t *message, int log)
{
    CLEANUP(close_fd) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = json_dumps(message, JSON_COMPACT);
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_hook, alphasort);
    struct error err;

    for (int i = 0; i < count; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, entries[i]->d_name);
        char *argv[] = {path, NULL};
        const struct run run = {.argv = argv, .input = text, .most_ns = HOOK_NS};
        if (check(fd, entries[i]->d_name, &err) || run_program(&run, &err))
            dprintf(log, "%s: %s\n", path, err.text);
        free(entries[i]);
    }
    free(entries);
    free(text);
}
