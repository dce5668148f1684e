/* A job that ends on this node, or cannot begin: carmad is told, and carma-slurm-agent has what Slurm is to be told. */
#ifndef CARMA_SLURM_STEP_ENDING_H
#define CARMA_SLURM_STEP_ENDING_H

#include <stdbool.h>

#include "slurm/step/step.h"

/* Hands the job to the agent, which puts it back into the queue. `code` is grant_ask()'s. */
void ending_hand_back(const struct step *step, int code, const char *reason);

/* Ends the job's lease: `status` as of waitpid(2); `stopped`: it was ended from outside. With `over`, carmad's verdict
 * on a lease counts that ended before its task did: its shepherd was killed; without, false and nothing done where a
 * slurmstepd lives that will tell its end. `output` may be NULL. */
bool ending_of_lease(const struct step *step, int status, bool stopped, bool over, const char *output);

/* The end of the file that the task's standard error went to, at most 64 KiB, read with its user's rights; the
 * caller's. NULL: it has none. */
char *ending_output(const struct step *step);

#endif
