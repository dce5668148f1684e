/* A job that ends on this node, or cannot begin: carmad is told, and carma-slurm-agent has what Slurm is to be told. */
#ifndef CARMA_SLURM_PLUGIN_ENDING_H
#define CARMA_SLURM_PLUGIN_ENDING_H

#include <stdbool.h>

#include "slurm/plugin/json.h"
#include "slurm/plugin/step.h"
#include "slurm/plugin/text.h"

/* Hands the job to the agent, which puts it back into the queue. `code` is lease_take()'s; -ENODATA: nothing tells its
 * count. `answer` is carmad's. */
void ending_hand_back(const struct step *step, int code, struct json answer);

/* Ends the job's lease. With `over`, carmad's verdict on a lease counts that ended before its task did: its shepherd
 * was killed; without, false and nothing done where a slurmstepd lives that will tell its end. `output` may be NULL. */
bool ending_of_lease(const struct step *step, int status, bool stopped, bool over, const struct text *output);

#endif
