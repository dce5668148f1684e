/* What the agent looks after on its node beside orders: counts of lost GPUs, leases whose slurmstepd is gone, suspended
 * jobs. */
#ifndef CARMA_SLURM_AGENT_NODE_H
#define CARMA_SLURM_AGENT_NODE_H

#include "slurm/agent/agent.h"

enum { NODE_LIST_BYTES = 512 };

struct orphan {
    uint32_t job;
    int64_t task; /* that lived without a slurmstepd; 0: of a batch script's slurmstepd */
};

/* Jobs that had no slurmstepd at the last look. Zero-initialise. */
struct node_watch {
    struct orphan *orphans; /* owned */
    size_t count;
};

/* The node's list of GRES as it is while no GPU is lost. */
int node_full_list(const struct agent *agent, char list[static NODE_LIST_BYTES], struct error *err);

void node_look(const struct agent *agent, struct node_watch *watch);
void node_watch_release(struct node_watch *watch);

#endif
