#include "gpu/mps/directory.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "base/file.h"
#include "base/trust/guarded.h"
#include "base/memory.h"

/* The jobs' users must be able to walk there: a server gives up its rights before it opens the pipes. */
static int make(const char *path, struct error *err)
{
    int rc = file_make_dirs(path, 0755, err);

    if (rc)
        return rc;
    rc = guarded_own_directory(path, 0755, err); /* for every umask */
    if (rc)
        error_prefix(err, "the directory '%s', for MPS, cannot be used", path);
    return rc;
}

/* The GPUs are written down, for later readers of the directory. */
static int note_gpus(struct mps_directory *directory, const char *gpus, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/gpus", directory->path);
    size_t length;

    if (gpus) {
        directory->gpus = xstrdup(gpus);
        return file_write_atomic(path, gpus, strlen(gpus), 0644, err);
    }
    return file_read(path, 64 * 64, &directory->gpus, &length, err);
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
    rc = make(directory->path, err);
    if (rc == 0)
        rc = make(directory->pipe, err);
    if (rc == 0)
        rc = make(directory->log, err);
    return rc == 0 ? note_gpus(directory, gpus, err) : rc;
}

void mps_directory_release(struct mps_directory *directory)
{
    free(directory->path);
    free(directory->pipe);
    free(directory->log);
    free(directory->gpus);
}
