#include "gpu/mps/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trust/guarded.h"
#include "base/memory.h"

/* The jobs' users must be able to walk there: a server gives up its rights before it opens the pipes. */
#define OPEN   0755
#define CLOSED 0700

/* Without a meaning on pipes, it marks those that are one user's, root's too. */
#define OF_ONE_USER S_ISVTX

static int set_mode(const char *path, mode_t mode, struct error *err)
{
    int rc = guarded_own_directory(path, mode, err); /* for every umask */

    if (rc)
        error_prefix(err, "the directory '%s', for MPS, cannot be used", path);
    return rc;
}

static int make(const char *path, mode_t mode, struct error *err)
{
    int rc = file_make_dirs(path, (int)mode, err);
    struct stat st;

    if (mode == CLOSED && rc == 0 && stat(path, &st) == 0 && (st.st_mode & 0777) == OPEN)
        mode = OPEN; /* jobs may run in it */
    return rc == 0 ? set_mode(path, mode, err) : rc;
}

static int give(int pipes, const char *name, uid_t uid)
{
    bool to_all = uid == MPS_EVERYBODY;
    struct stat st;

    if (fstatat(pipes, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode) ||
        (!(st.st_mode & (S_IWOTH | OF_ONE_USER)) && st.st_uid == geteuid()))
        return 0;
    /* the owner first: he could change the mode */
    return fchownat(pipes, name, to_all ? geteuid() : uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0
               ? -1
               : fchmodat(pipes, name, to_all ? 0666 : OF_ONE_USER | 0600, 0);
}

int mps_directory_admit(const struct mps_directory *directory, uid_t uid, struct error *err)
{
    int fd = guarded_directory(directory->pipe, O_RDONLY, err), rc = 0;
    DIR *pipes = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!pipes)
        return fd < 0 ? fd : error_set(err, errno, "%s: %s", directory->pipe, strerror(errno));
    while (rc == 0 && (entry = readdir(pipes)))
        if (give(dirfd(pipes), entry->d_name, uid) < 0)
            rc = error_set(err, errno, "%s/%s cannot be given to uid %u: %s", directory->pipe, entry->d_name,
                           (unsigned)uid, strerror(errno));
    closedir(pipes);
    return rc == 0 ? set_mode(directory->path, OPEN, err) : rc;
}

/* For later readers of the directory. */
static int write_gpus(const struct mps_directory *directory, const char *gpus, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/gpus", directory->path);

    return file_write_atomic(path, gpus, strlen(gpus), 0644, err);
}

int mps_directory_gpus(const char *path, char **gpus, struct error *err)
{
    CLEANUP(free_ptr) char *file = xasprintf("%s/gpus", path);
    size_t length;

    return file_read(file, 64 * 64, gpus, &length, err);
}

static int make_all(const struct mps_directory *directory, struct error *err)
{
    CLEANUP(free_ptr)
    char *above = xstrndup(directory->path, (size_t)(strrchr(directory->path, '/') - directory->path));
    int rc = file_make_dirs(above, OPEN, err);

    if (rc == 0)
        rc = make(directory->path, CLOSED, err);
    if (rc == 0)
        rc = make(directory->pipe, OPEN, err);
    return rc == 0 ? make(directory->log, OPEN, err) : rc;
}

int mps_directory_open(struct mps_directory *directory, const char *path, const char *gpus, struct error *err)
{
    static const char longest[] = "/control_privileged";
    int rc;

    *directory = (struct mps_directory){
        .path = xstrdup(path), .pipe = xasprintf("%s/pipe", path), .log = xasprintf("%s/log", path)};
    if (strlen(directory->pipe) + sizeof longest >
        sizeof((struct sockaddr_un *)0)->sun_path) /* NVIDIA's says nothing of it */
        return error_set(err, ENAMETOOLONG,
                         "the MPS pipe directory '%s' has too long a name for a socket: set `socket` to a "
                         "path that is shorter",
                         directory->pipe);
    directory->gpus = gpus ? xstrdup(gpus) : NULL;
    rc = make_all(directory, err);
    if (rc)
        return rc;
    return gpus ? write_gpus(directory, gpus, err) : mps_directory_gpus(path, &directory->gpus, err);
}

/* The control daemon may have ended because others had removed all this. */
int mps_directory_close(const struct mps_directory *directory, struct error *err)
{
    int rc = make_all(directory, err);

    if (rc == 0)
        rc = write_gpus(directory, directory->gpus, err);
    return rc == 0 ? set_mode(directory->path, CLOSED, err) : rc;
}

void mps_directory_release(struct mps_directory *directory)
{
    free(directory->path);
    free(directory->pipe);
    free(directory->log);
    free(directory->gpus);
}
