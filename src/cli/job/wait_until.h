/* `carma wait --until FIELD=VALUE`: until a field of each job has a value. */
#ifndef CARMA_CLI_JOB_WAIT_UNTIL_H
#define CARMA_CLI_JOB_WAIT_UNTIL_H

#include "cli/cli.h"

/* Both borrowed from the command line. */
struct wait_until {
    const char *field; /* as `carma show --json` has it; members of members behind dots: "placements.0.gpu" */
    const char *value; /* as `carma show --json` prints it; texts without their quotes */
};

/* Splits "FIELD=VALUE" at its first '=', which becomes the end of the field. -EINVAL: one of them is missing. */
int wait_until_parse(struct wait_until *until, char *text, struct error *err);

/* Waits for each job in turn. The jobs that have the value are appended to `found`, unless that is NULL. CLI_OK; or
 * complains, as of a job that has ended without it, and returns CLI_FAILURE. */
int wait_until_jobs(struct cli *cli, const struct id_list *list, const struct wait_until *until, json_t *found);

#endif
