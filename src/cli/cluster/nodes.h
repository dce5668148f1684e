/* The nodes of the cluster: as the user names them, or as Slurm does. */
#ifndef CARMA_CLI_CLUSTER_NODES_H
#define CARMA_CLI_CLUSTER_NODES_H

#include <stddef.h>

#include "base/error.h"
#include "cli/cluster/cluster.h"

struct cluster_nodes {
    char **names; /* owned; each once */
    size_t count, capacity;
};

/* -EINVAL: a name that cannot be one; else a negative errno: nobody names them. */
int cluster_nodes_find(struct cluster_nodes *nodes, const struct cluster *cluster, struct error *err);
void cluster_nodes_release(struct cluster_nodes *nodes);

#endif
