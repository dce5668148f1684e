/* Sweeps: `--param lr=1e-3,1e-4 --param bs=32,64` are four jobs, one for each choice of values. */
#ifndef CARMA_CLI_JOB_SWEEP_H
#define CARMA_CLI_JOB_SWEEP_H

#include <stddef.h>

#include "base/error.h"

struct job_spec;

#define SWEEP_MAX_JOBS 10000

struct sweep {
    struct sweep_parameter {
        char *name, *values; /* owned; the values one behind the other, each with its NUL */
        size_t count;
    } * parameters; /* owned */
    size_t count, capacity;
};

/* "NAME=VALUE,VALUE,...". -EINVAL with one line that says what is wrong. */
int sweep_add(struct sweep *sweep, const char *text, struct error *err);

/* How many jobs it makes of one; 1 without parameters. */
size_t sweep_jobs(const struct sweep *sweep);

/* The one with this number, from 0; the last parameter changes first: its values are in the environment, stand for
 * {NAME} in its command and outputs, and behind its name. */
void sweep_choose(const struct sweep *sweep, size_t number, struct job_spec *spec);

void sweep_release(struct sweep *sweep);

#endif
