/* slurmctld's own record of a job, by libslurm: numbers alone, so that no name, comment or environment of a user's can
 * pass for a count. */
#ifndef CARMA_SLURM_PLUGIN_RECORD_H
#define CARMA_SLURM_PLUGIN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "slurm/shared/size.h"

struct record {
    struct counts counts;
    uint32_t restart;
    bool running; /* Slurm has a job that it ends, by scancel or its time limit, in another state */
};

/* 0 or a negative errno: -ENOENT where slurmctld does not know the job, -ETIMEDOUT where it does not answer. */
int record_ask(uint32_t job, const char *node, int64_t deadline_ms, struct record *record);

#endif
