/* What a task gets: its job's lease by what Slurm has counted, and the variables, the group and the GPUs of it. */
#ifndef CARMA_SLURM_STEP_GRANT_H
#define CARMA_SLURM_STEP_GRANT_H

#include <jansson.h>

#include "base/error.h"
#include "slurm/step/step.h"

/* A lease that was asked for. */
struct grant {
    int code;       /* 0, or carmad's errno: -EBUSY: not now, -ERANGE: never on this node, ... */
    json_t *lease;  /* its JSON */
    bool exclusive; /* of whole GPUs */
    struct error why;
};

/* Asks until `wait_ms` is over, also while no carmad listens: it may be starting again. */
struct grant grant_ask(const struct step *step);

/* Makes the task one of the lease's, and answers with its variables. 0, or a negative errno and why. */
int grant_join(const struct step *step, struct grant *grant);

#endif
