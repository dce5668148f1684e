/* The files by which dcgm-exporter learns which jobs are on which GPU (its "HPC job mapping"). One directory has a file
 * for each GPU, with the number of a job on each line. It is named by the GPU's number (`0`; a GPU instance in MIG
 * mode: `0.2`). */
#ifndef CARMA_DAEMON_NODE_JOB_FILES_H
#define CARMA_DAEMON_NODE_JOB_FILES_H

#include <stddef.h>

#include "base/error.h"

#define JOB_FILE_NAME 24

struct job_file {
    char name[JOB_FILE_NAME];
    char *text; /* owned by the caller */
};

/* Makes the directory (where it is not there), and its files these. One that is not as it should be is replaced as a
 * whole, so that a reader finds the old or the new one. One that is named like a GPU and is not among them is removed.
 * Others are left alone. No symbolic link is followed, the directory's own name included. Blocks. All steps are tried,
 * also after a failure; the error is the first one's. */
int job_files_set(const char *directory, const struct job_file *files, size_t count, struct error *err);

#endif
