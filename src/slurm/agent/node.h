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

/* The last look, and the jobs that had no slurmstepd at it. Zero-initialise. */
struct node_watch {
    struct orphan *orphans; /* owned */
    size_t count;
    size_t leases; /* that lived then */
};

/* The node's list of GRES as it is while no GPU is lost. */
int node_full_list(const struct agent *agent, char list[static NODE_LIST_BYTES], struct error *err);

/* Whether fewer leases live than at the last look: there may be room. */
bool node_look(const struct agent *agent, struct node_watch *watch);
void node_watch_release(struct node_watch *watch);

#endif
