/* The data of GPUs that watchers see change: the event `gpus` (docs/formats/http.md). */
#ifndef CARMA_DAEMON_NODE_NODE_LIVE_H
#define CARMA_DAEMON_NODE_NODE_LIVE_H

#include "daemon/node/node.h"

struct node_live; /* time of the last look */

struct node_live *node_live_new(void);
void node_live_free(struct node_live *live);

/* Looks at the GPUs; whether any shown value differs from the last look's. */
bool node_live_look(struct node_live *live, const struct node *node);

/* As it was looked at. */
json_t *node_live_to_json(const struct node_live *live, const struct node *node, int64_t now_ns);

#endif
