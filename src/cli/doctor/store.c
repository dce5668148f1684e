/* The daemon's state directory: its owner, its file system, its free space, and whether the store can be read. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/admin/verify_store.h"
#include "cli/doctor/doctor.h"
#include "store/store.h"

#define LOW_BYTES     GIB
#define NO_BYTES      (64 * MIB)
#define LOW_INODES    1000
#define CHECKED_BYTES (256 * MIB) /* a store up to this size is read from end to end: it takes seconds */

/* ---- The file system ---- */

/* The mount that a path is on, by /proc/self/mountinfo: the longest mount point that is the path or above it; of
 * several, the last. False: not told. */
static bool find_mount(const struct doctor *doctor, const char *path, char point[static 256], char type[static 64])
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, "/proc/self/mountinfo", NULL);
    size_t longest = 0;
    char *rest = text, *line;

    while (text && (line = strsep(&rest, "\n"))) {
        const char *separator = strstr(line, " - ");
        char at[256], kind[64];
        if (!separator || sscanf(line, "%*s %*s %*s %*s %255s", at) != 1 || sscanf(separator + 3, "%63s", kind) != 1)
            continue;
        size_t length = strcmp(at, "/") == 0 ? 0 : strlen(at);
        if (strncmp(path, at, length) != 0 || (path[length] && path[length] != '/') || length < longest)
            continue;
        longest = length;
        strcpy(point, at);
        strcpy(type, kind);
    }
    return longest || (text && strstr(text, " / "));
}

static bool is_network(const char *type)
{
    static const char *const types[] = {"nfs",        "nfs4",           "cifs",      "smb3",     "smbfs", "ceph",
                                        "glusterfs",  "lustre",         "gpfs",      "beegfs",   "afs",   "9p",
                                        "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"};

    for (size_t i = 0; i < array_size(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static void check_file_system(struct doctor *doctor, const char *directory)
{
    char point[256] = "/", type[64] = "";

    if (!find_mount(doctor, directory, point, type))
        doctor_find(doctor, "file system", DOCTOR_SKIP, NULL,
                    "/proc/self/mountinfo does not tell the file system of %s", directory);
    else if (is_network(type))
        doctor_find(
            doctor, "file system", DOCTOR_FAIL,
            "set state_directory to a local disk: SQLite's log in shared memory and its locks do not work there",
            "%s is on %s (%s), a network's", directory, point, type);
    else if (strcmp(type, "tmpfs") == 0 || strcmp(type, "ramfs") == 0)
        doctor_find(doctor, "file system", DOCTOR_WARN, "set state_directory to a disk",
                    "%s is on %s (%s): a reboot forgets all jobs", directory, point, type);
    else
        doctor_find(doctor, "file system", DOCTOR_OK, NULL, "%s, mounted on %s", type, point);
}

static void check_room(struct doctor *doctor, const char *directory)
{
    char free_text[UNITS_TEXT], total_text[UNITS_TEXT];
    struct statvfs st;

    if (statvfs(directory, &st) != 0) {
        doctor_find(doctor, "disk", DOCTOR_SKIP, NULL, "%s: %s", directory, strerror(errno));
        return;
    }
    int64_t bytes = (int64_t)st.f_bavail * (int64_t)st.f_frsize, total = (int64_t)st.f_blocks * (int64_t)st.f_frsize;
    bool few_inodes = st.f_files && st.f_favail < LOW_INODES;
    enum doctor_mark mark = bytes < NO_BYTES || (st.f_files && st.f_favail == 0) ? DOCTOR_FAIL
                            : bytes < LOW_BYTES || few_inodes                    ? DOCTOR_WARN
                                                                                 : DOCTOR_OK;
    format_bytes(bytes, free_text);
    format_bytes(total, total_text);
    doctor_find(doctor, "disk", mark,
                mark == DOCTOR_OK ? NULL
                                  : "make room: without it no job is accepted or started, and those that run go on",
                "%s of %s free%s", free_text, total_text, few_inodes ? ", and hardly any inodes" : "");
}

/* ---- The directory and the store ---- */

static bool check_directory(struct doctor *doctor, const char *directory)
{
    const struct passwd *owner;
    struct stat st;

    if (stat(directory, &st) != 0) {
        if (errno == ENOENT)
            doctor_find(doctor, "state", DOCTOR_SKIP, NULL, "%s is not there: carmad makes it", directory);
        else
            doctor_find(doctor, "state", errno == EACCES ? DOCTOR_SKIP : DOCTOR_FAIL,
                        "run carma doctor as the user that runs carmad", "%s: %s", directory, strerror(errno));
        return false;
    }
    owner = getpwuid(st.st_uid);
    CLEANUP(free_ptr) char *name = owner ? xstrdup(owner->pw_name) : xasprintf("uid %u", (unsigned)st.st_uid);
    if (!S_ISDIR(st.st_mode))
        doctor_find(doctor, "state", DOCTOR_FAIL, "remove it, or set state_directory to another place",
                    "%s is not a directory", directory);
    else if (st.st_mode & 022)
        doctor_find(doctor, "state", DOCTOR_FAIL, "chmod go-w it: carmad does not start with it",
                    "%s, of %s, mode %04o: others may write it", directory, name, (unsigned)st.st_mode & 07777);
    else if (geteuid() != 0 && st.st_uid != geteuid())
        doctor_find(doctor, "state", DOCTOR_SKIP, "run carma doctor as that user, or as root",
                    "%s is of %s: this user may not read it", directory, name);
    else if (access(directory, W_OK | X_OK) != 0)
        doctor_find(doctor, "state", DOCTOR_FAIL, "mount it read-write, or chmod u+rwx it", "%s, of %s: %s", directory,
                    name, strerror(errno));
    else {
        doctor_find(doctor, "state", DOCTOR_OK, NULL, "%s, of %s, mode %04o", directory, name,
                    (unsigned)st.st_mode & 07777);
        return true;
    }
    return false;
}

static void check_store(struct doctor *doctor, const char *directory)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    char size[UNITS_TEXT];
    struct verify_counts counts;
    struct error err;
    struct stat st;
    int rc;

    if (stat(path, &st) != 0) {
        doctor_find(doctor, "store", errno == ENOENT ? DOCTOR_SKIP : DOCTOR_FAIL, NULL, "%s: %s%s", path,
                    strerror(errno), errno == ENOENT ? " (carmad makes it)" : "");
        return;
    }
    if (store_check_mark(directory, &err) < 0) {
        doctor_find(doctor, "store", DOCTOR_FAIL, NULL, "%s", err.text);
        return;
    }
    format_bytes(st.st_size, size);
    if (st.st_size > CHECKED_BYTES) {
        doctor_find(doctor, "store", DOCTOR_SKIP, "carma admin verify reads all of it",
                    "%s, %s: too large to be read here", path, size);
        return;
    }
    rc = verify_store(directory, &counts, &err);
    if (rc == -ENOTSUP)
        doctor_find(doctor, "store", DOCTOR_WARN, NULL, "%s", err.text);
    else if (rc)
        doctor_find(doctor, "store", DOCTOR_FAIL,
                    "stop carmad, keep a copy of the store, and put a backup in its place (carma admin backup)", "%s",
                    err.text);
    else
        doctor_find(doctor, "store", DOCTOR_OK, NULL, "%s, %s, %" PRIu64 " %s", path, size, counts.records,
                    counts.records == 1 ? "record" : "records");
}

/* The nearest existing directory: new ones below it will be on its disk. Owned by the caller. */
static char *existing(const char *path)
{
    char *found = xstrdup(path);

    while (access(found, F_OK) != 0 && strrchr(found, '/') > found)
        *strrchr(found, '/') = '\0';
    if (access(found, F_OK) != 0)
        strcpy(found, "/");
    return found;
}

void doctor_check_store(struct doctor *doctor)
{
    const char *directory = doctor->config.state_directory;
    CLEANUP(free_ptr) char *there = existing(directory);
    bool readable = check_directory(doctor, directory);

    check_file_system(doctor, directory);
    check_room(doctor, there);
    if (readable)
        check_store(doctor, directory);
}
