/* The jobs that wait at Slurm, for the view over all nodes: no node knows them yet. */
#ifndef CARMA_CLI_CLUSTER_SLURM_H
#define CARMA_CLI_CLUSTER_SLURM_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/cluster/children.h"
#include "cli/cluster/cluster.h"

extern const char *const slurm_waiting_argv[]; /* of a child whose output is read by: */

/* {"waiting": [{"job": "7" or "7_[1-3]", "user", "nodes": n, "gres", "submitted_s": wall time, "reason", "name"}]}, in
 * Slurm's order, or {"error": why}. NULL: there is no Slurm on this machine. */
json_t *slurm_waiting(const struct child *squeue, int64_t timeout_ms);

/* The GPUs and jobs of all nodes, as cluster_ask, with "slurm" as above where there is one. */
int cluster_ask_all(const struct cluster *cluster, json_t **reply, struct error *err);

/* Why such a job waits, and for which resources: "Resources (gres:gpumem:5G on 2 nodes)"; owned by the caller, not
 * escaped. */
char *slurm_why(const json_t *job);

#endif
