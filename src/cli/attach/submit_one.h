/* A job of a command that goes on with it. */
#ifndef CARMA_CLI_ATTACH_SUBMIT_ONE_H
#define CARMA_CLI_ATTACH_SUBMIT_ONE_H

#include <stdint.h>

struct cli;
struct job_spec;

/* The job's number, which is said; 0: it was not submitted, and *status is the command's. */
uint64_t submit_one(struct cli *cli, const struct job_spec *spec, int *status);

#endif
