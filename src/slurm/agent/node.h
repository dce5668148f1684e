/* What the agent looks after on its node beside orders: counts of lost GPUs, leases whose slurmstepd is gone, suspended
 * jobs. */
#ifndef CARMA_SLURM_AGENT_NODE_H
#define CARMA_SLURM_AGENT_NODE_H

#include "slurm/agent/agent.h"

/* Jobs that had no slurmstepd at the last look. Zero-initialise. */
struct node_watch {
    uint32_t *orphans; /* owned */
    size_t count;
};

void node_look(const struct agent *agent, struct node_watch *watch);
void node_watch_release(struct node_watch *watch);

#endif
