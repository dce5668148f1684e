/* The picture of all nodes for `carma top --cluster`. */
#ifndef CARMA_CLI_TOP_CLUSTER_H
#define CARMA_CLI_TOP_CLUSTER_H

#include "cli/cluster/cluster.h"
#include "cli/top/model.h"

/* As the answers of one daemon would be, each GPU and job with its "node". A node that does not answer is a row of the
 * GPUs with its "error". -errno where the nodes are not known. */
int top_cluster_picture(const struct cluster *cluster, struct top_picture *picture, struct error *err);

#endif
