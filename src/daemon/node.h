/* The node's GPUs: what carma-monitor reads becomes records, and what people are shown. */
#ifndef CARMA_DAEMON_NODE_H
#define CARMA_DAEMON_NODE_H

#include "daemon/daemon.h"

struct node *node_new(struct daemon *daemon);
void node_free(struct node *node);

/* Starts carma-monitor; what it reads becomes inputs. */
void node_watch(struct node *node);

/* Feeds the core the readings that it wants, as inputs of the engine's current turn. */
void node_feed_samples(struct node *node);

/* What jobs are estimated for: the configured machine profile, else that of the node's first GPU that has one, else the
 * default; with the memory that the node's largest GPU has. */
void node_machine_profile(struct node *node, struct machine_profile *profile);

json_t *node_to_json(const struct node *node); /* docs/formats/http.md, GET /v1/gpus */

#endif
