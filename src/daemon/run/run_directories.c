#include "daemon/run/run_directories.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "daemon/log.h"
#include "launch/launch.h"

char *run_directory(const char *directory, uint64_t job, uint32_t launch, uint32_t try)
{
    return xasprintf("%s/%" PRIu64 "-%" PRIu32 "-%" PRIu32, directory, job, launch, try);
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

uint32_t run_directory_tries(const char *directory, uint64_t job, uint32_t launch)
{
    for (uint32_t tries = 0;; tries++) {
        CLEANUP(free_ptr) char *path = run_directory(directory, job, launch, tries + 1);
        if (!exists(path))
            return tries;
    }
}

void run_directories_remove(const char *directory, uint64_t job, uint32_t attempts)
{
    for (uint32_t launch = 1; launch <= attempts; launch++) {
        for (uint32_t try = run_directory_tries(directory, job, launch); try > 0; try--) {
            CLEANUP(free_ptr) char *path = run_directory(directory, job, launch, try);
            file_remove_tree(path);
        }
    }
}

static void sweep_one(const char *directory, const char *name, uint64_t job)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, name);
    struct launch_status status;

    if (launch_read_status(path, &status, NULL) == 0 && launch_alive(status.shepherd, status.shepherd_start_ticks))
        daemon_log("'%s': a job %" PRIu64 " runs that the store does not know: its shepherd is process %d", path, job,
                   (int)status.shepherd);
    else
        file_remove_tree(path);
}

uint32_t run_directories_last(const char *directory, uint64_t job)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    uint32_t launch, try, last = 0;
    uint64_t of;

    while (entries && (entry = readdir(entries)))
        if (sscanf(entry->d_name, "%" SCNu64 "-%" SCNu32 "-%" SCNu32, &of, &launch, &try) == 3 && of == job &&
            launch > last)
            last = launch;
    if (entries)
        closedir(entries);
    return last;
}

bool run_directories_any(const char *directory)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    uint32_t launch, try;
    uint64_t job;
    bool any = false;

    while (entries && !any && (entry = readdir(entries)))
        any = sscanf(entry->d_name, "%" SCNu64 "-%" SCNu32 "-%" SCNu32, &job, &launch, &try) == 3;
    if (entries)
        closedir(entries);
    return any;
}

void run_directories_sweep(const char *directory, bool (*is_known)(uint64_t job, uint32_t launch, const void *user),
                           const void *user)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    uint32_t launch, try;
    uint64_t job;

    while (entries && (entry = readdir(entries)))
        if (sscanf(entry->d_name, "%" SCNu64 "-%" SCNu32 "-%" SCNu32, &job, &launch, &try) == 3 &&
            !is_known(job, launch, user))
            sweep_one(directory, entry->d_name, job);
    if (entries)
        closedir(entries);
}
