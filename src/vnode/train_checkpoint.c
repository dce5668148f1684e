#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "vnode/train.h"

#define CHECKPOINT_LIMIT 4096

static char *checkpoint_path(void)
{
    const char *directory = getenv("CARMA_CHECKPOINT_DIR");
    const char *job = getenv("CARMA_JOB_ID");

    if (!directory || !*directory)
        directory = ".";
    if (job && strchr(job, '/'))
        job = NULL;
    return xasprintf("%s/carma-train%s%s.checkpoint", directory, job && *job ? "-" : "", job ? job : "");
}

int checkpoint_write(const struct train_plan *plan, double done_ns, struct error *err)
{
    CLEANUP(free_ptr) char *path = checkpoint_path();
    CLEANUP(free_ptr)
    char *text = xasprintf("carma-train checkpoint 1\nwork_ns %.0f\ndone_ns %.0f\n", plan->work_ns, done_ns);

    return file_write_atomic(path, text, strlen(text), 0666, err);
}

int checkpoint_read(const struct train_plan *plan, double *done_ns, struct error *err)
{
    CLEANUP(free_ptr) char *path = checkpoint_path();
    CLEANUP(free_ptr) char *text = NULL;
    double work, done;
    size_t length;
    int rc;

    *done_ns = 0;
    if (access(path, F_OK) < 0)
        return 0;
    rc = file_read(path, CHECKPOINT_LIMIT, &text, &length, err);
    if (rc < 0)
        return rc;
    if (sscanf(text, "carma-train checkpoint 1\nwork_ns %lf\ndone_ns %lf", &work, &done) != 2 || !(done >= 0) ||
        !(done <= work))
        return error_set(err, EINVAL, "'%s' is not a checkpoint of carma-train: remove it", path);
    if (work < plan->work_ns - 1 || work > plan->work_ns + 1)
        return error_set(err, EINVAL, "'%s' is the checkpoint of other work: remove it", path);
    *done_ns = done;
    return 0;
}

void checkpoint_remove(void)
{
    CLEANUP(free_ptr) char *path = checkpoint_path();

    unlink(path);
}
