#include "sandbox/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "sandbox/unowned.h"

#define TEXT_LIMIT 16384

static char *read_from(int directory, const char *pid, const char *file)
{
    CLEANUP(free_ptr) char *name = xasprintf("%s/%s", pid, file);
    CLEANUP(close_fd) int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t length;

    return fd >= 0 && file_read_fd(fd, name, TEXT_LIMIT, &text, &length, NULL) == 0 ? text : NULL;
}

static int64_t number_behind(const char *text, const char *key)
{
    const char *found = text ? strstr(text, key) : NULL;
    int64_t number = 0;

    if (found)
        sscanf(found + strlen(key), " %" SCNd64, &number);
    return number;
}

/* Anonymous pages and their tables. */
static void add_process(int proc, const char *pid, bool exactly, struct watch_sums *sums)
{
    CLEANUP(free_ptr) char *status = read_from(proc, pid, "status");
    CLEANUP(free_ptr) char *rollup = exactly ? read_from(proc, pid, "smaps_rollup") : NULL;

    sums->threads += number_behind(status, "\nThreads:");
    sums->memory_bytes += KIB * (rollup ? number_behind(rollup, "\nPss_Anon:") : number_behind(status, "\nRssAnon:"));
    sums->memory_bytes += KIB * number_behind(status, "\nVmPTE:");
}

static int64_t written_bytes(int scratch)
{
    struct statfs fs;

    return fstatfs(scratch, &fs) < 0 ? 0 : (int64_t)(fs.f_blocks - fs.f_bfree) * fs.f_bsize;
}

static void add_all(const struct tree_ends *ends, int64_t thread_limit, bool exactly, struct watch_sums *sums)
{
    int own = openat(ends->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;

    *sums = (struct watch_sums){.memory_bytes = written_bytes(ends->scratch)};
    while (entries && sums->threads <= thread_limit && (entry = readdir(entries)))
        if (isdigit((unsigned char)entry->d_name[0]))
            add_process(ends->proc, entry->d_name, exactly, sums);
    if (entries)
        closedir(entries);
}

void watch_look(const struct tree_ends *ends, int64_t thread_limit, struct watch_sums *sums)
{
    add_all(ends, thread_limit, false, sums);
}

bool watch_exceeds(const struct tree_ends *ends, int64_t bytes)
{
    const int64_t unowned = unowned_bytes(ends->proc);
    struct watch_sums sums;

    add_all(ends, INT64_MAX, false, &sums);
    if (sums.memory_bytes + unowned > bytes)
        add_all(ends, INT64_MAX, true, &sums);
    return sums.memory_bytes + unowned > bytes;
}

int64_t watch_threads_of(uid_t uid)
{
    CLEANUP(close_fd) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = opendir("/proc");
    const struct dirent *entry;
    int64_t threads = 0;

    while (proc >= 0 && entries && (entry = readdir(entries))) {
        struct stat st;
        if (isdigit((unsigned char)entry->d_name[0]) && fstatat(proc, entry->d_name, &st, 0) == 0 && st.st_uid == uid) {
            CLEANUP(free_ptr) char *status = read_from(proc, entry->d_name, "status");
            threads += number_behind(status, "\nThreads:");
        }
    }
    if (entries)
        closedir(entries);
    return threads;
}
