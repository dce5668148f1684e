/* A job's output file, opened with the rights of the job's user by root, and by others with their own. */
#ifndef CARMA_CLI_JOB_LOG_FILE_H
#define CARMA_CLI_JOB_LOG_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Where the job, as the daemon describes it, writes its output or (`error`, where that is another file) its errors;
 * owned by the caller. NULL: the daemon does not tell. */
char *log_file_path(const json_t *job, bool error, uint64_t id);

/* The job's user, as the daemon describes the job; -1: it does not tell. */
int64_t log_file_owner(const json_t *job);

/* Opens it; only a regular file is opened for reading (-EINVAL). */
int log_file_open(const char *path, int64_t owner, int *fd, struct error *err);

/* The next bytes of the file, at most `size`: how many, 0 where there are no more yet, or a negative errno. A file that
 * was made anew (the job was started again) is read from its start. */
ssize_t log_file_read(int fd, char *block, size_t size, struct error *err);

#endif
