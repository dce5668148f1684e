/* The plugin's orders (slurm/shared/spool.h) carried out: jobs go back into Slurm's queue with a raised request or
 * later, and carmad's answer to an end becomes the job's AdminComment. An order is taken from the spool after Slurm has
 * been told. So an agent that is killed carries it out when it is started again. */
#ifndef CARMA_SLURM_AGENT_ORDERS_H
#define CARMA_SLURM_AGENT_ORDERS_H

#include "slurm/agent/agent.h"

/* Looks at all orders once. true: some wait for Slurm, so look again soon. */
bool orders_carry_out(const struct agent *agent);

/* Whether a start that ran has ended here since the last call. */
bool orders_have_ended(void);

#endif
