/* Waiting for jobs, for `carma wait` and `carma submit --wait`. */
#ifndef CARMA_CLI_JOB_WAIT_H
#define CARMA_CLI_JOB_WAIT_H

#include "cli/cli.h"

/* Until all have ended; the exit status that `carma wait` documents. The ended jobs are appended to the array `ended`,
 * unless that is NULL. Without `told` a line on standard output tells of each estimate of theirs. */
int wait_for_jobs(struct cli *cli, const struct id_list *list, bool told, json_t *ended);

#endif
