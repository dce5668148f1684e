/* Doing something to jobs, for the commands of job_verbs.def and `carma edit`. */
#ifndef CARMA_CLI_JOB_CHANGE_H
#define CARMA_CLI_JOB_CHANGE_H

#include "cli/cli.h"

/* POST /v1/jobs/VERB for these jobs, with the body; asks before, as cli_change() does. The exit status. */
int change_jobs(struct cli *cli, const char *verb, struct cli_jobs *jobs, const json_t *body);

#endif
