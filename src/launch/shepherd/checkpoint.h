/* The directory for a job's checkpoints, $CARMA_CHECKPOINT_DIR: carma-JOB.ckpt in the job's directory, one for all
 * launches of the job. It is made and removed with the user's rights. A job's files in it are the user's, and are never
 * removed. */
#ifndef CARMA_LAUNCH_SHEPHERD_CHECKPOINT_H
#define CARMA_LAUNCH_SHEPHERD_CHECKPOINT_H

#include "base/error.h"
#include "launch/request.h"

char *checkpoint_path(const struct shepherd_request *request); /* owned by the caller */

/* Makes it where it is not there yet. The caller is the job's user, in the job's directory. 0 or a negative errno.
 * -EPERM: it is there, but it belongs to another, or others may write it. */
int checkpoint_make(const struct shepherd_request *request, struct error *err);

/* Removes it where it is empty, in a child process. The caller is the shepherd, after the job's end, where the child
 * that reads its output (tail.h) has not done so. */
void checkpoint_remove_empty(const struct shepherd_request *request);

#endif
