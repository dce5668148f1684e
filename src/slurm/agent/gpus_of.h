/* For a site's Epilog: which GPUs a job has, or had, here. */
#ifndef CARMA_SLURM_AGENT_GPUS_OF_H
#define CARMA_SLURM_AGENT_GPUS_OF_H

#include "slurm/agent/agent.h"

/* Prints the variables that Slurm would give an Epilog for GPUs of its own, one a line, to be evaluated by a shell.
 * Nothing for a job that has had no lease here. 0 or a negative errno. */
int gpus_of_print(const struct agent *agent, int64_t job, struct error *err);

#endif
