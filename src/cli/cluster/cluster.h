/* Many nodes in one view (docs/cluster.md): the carma of each is asked by ssh, or by TCP, all at the same time. Only
 * reads: nothing is done on a node that the same user could not see there. */
#ifndef CARMA_CLI_CLUSTER_CLUSTER_H
#define CARMA_CLI_CLUSTER_CLUSTER_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/cluster/children.h"

#define CLUSTER_TIMEOUT_MS 2000
#define CLUSTER_NODES_MOST 1024

struct cluster {
    bool wanted;
    const char *nodes; /* borrowed; NULL: $CARMA_NODES, else those of sinfo */
    int64_t timeout_ms;
};

void cluster_init(struct cluster *cluster);

/* Lines of a command's table of options, and their parser: ARGP_ERR_UNKNOWN where the key is not one of them. */
enum { CLUSTER_KEY = 0x400, CLUSTER_KEY_NODES, CLUSTER_KEY_TIMEOUT };
/* clang-format off */
#define CLUSTER_OPTIONS                                                                                                \
    {"cluster", CLUSTER_KEY, NULL, 0, "over all nodes of the cluster: $CARMA_NODES, else those that sinfo names", 0},  \
    {"nodes", CLUSTER_KEY_NODES, "LIST", 0,                                                                            \
     "over these nodes: names for ssh, or tcp://ADDRESS:PORT; with commas in between", 0},                             \
    {"node-timeout", CLUSTER_KEY_TIMEOUT, "SECONDS", 0, "leave out a node that needs longer (default: 2)", 0}
/* clang-format on */
error_t cluster_parse(int key, char *arg, const struct argp_state *state, struct cluster *cluster);

/* Runs each command (its words behind `carma`, the last NULL; they have to print JSON) on each node. *reply becomes
 * {"nodes": [{"name": N, "error": why} or {"name": N, and the members of the answers}]}, in the order of the list.
 * `beside` (may be NULL), a program of Slurm's, runs meanwhile. A node that fails is not an error of the call; -errno
 * where the nodes are not known. */
int cluster_ask(const struct cluster *cluster, const char *const *const *commands, size_t count, struct child *beside,
                json_t **reply, struct error *err);

/* Why a child brought no answer: one printable line, owned by the caller. */
char *cluster_why(const struct child *child, int64_t timeout_ms);

/* Prints "NODE: why" for each node that did not answer. */
void cluster_print_silent(const json_t *reply);

/* CLI_FAILURE where no node answered. */
int cluster_status(const json_t *reply);

/* As JSON of pure ASCII: names of others cannot steer the terminal. */
void cluster_print_json(const json_t *reply);

#endif
