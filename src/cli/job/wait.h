/* Waiting for jobs, for `carma wait` and `carma submit --wait`. */
#ifndef CARMA_CLI_JOB_WAIT_H
#define CARMA_CLI_JOB_WAIT_H

#include "cli/cli.h"

/* Until all have ended; the exit status that `carma wait` documents. The ended jobs are appended to the array `ended`,
 * unless that is NULL. Without `told` a line on standard output tells of each estimate of theirs. */
int wait_for_jobs(struct cli *cli, const struct id_list *list, bool told, json_t *ended);

/* How the job has ended, in a line on standard error; with its last line of output, if wished. Of a job that completed
 * it is what has to be said of it nevertheless. */
void wait_tell_end(uint64_t id, const json_t *job, bool quote);

/* The exit status that `carma wait` documents, of a job that has ended. */
int wait_job_status(const json_t *job);

/* Ctrl-C ends the command and not the jobs: from now on it says so, and how to do either. `again`: the command. */
void wait_tell_when_interrupted(const struct id_list *list, const char *again);

/* Sleeps between two looks at a job, and makes the next pause longer: short at first, so that nobody waits much longer
 * for a short job than it takes, a second at most, and more where many of the same user wait. In a longer pause the
 * connection is closed: a user has a bounded number of them, and may wait for more jobs than that. */
#define WAIT_FIRST_PAUSE_MS 50
void wait_pause(struct cli *cli, int64_t *pause_ms);

int64_t wait_longer(const struct cli *cli, int64_t pause_ms); /* the next pause */

#endif
