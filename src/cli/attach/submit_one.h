/* A job of a command that goes on with it. */
#ifndef CARMA_CLI_ATTACH_SUBMIT_ONE_H
#define CARMA_CLI_ATTACH_SUBMIT_ONE_H

#include <argp.h>
#include <stdint.h>

struct cli;
struct job_spec;

/* All that a submission may say, for submit_take_option. */
extern const struct argp_option submit_one_options[];

/* The job's number, which is said; 0: it was not submitted, and *status is the command's. */
uint64_t submit_one(struct cli *cli, const struct job_spec *spec, int *status);

#endif
