/* What people watch of the GPUs while it changes: the event `gpus` (docs/formats/http.md). */
#ifndef CARMA_DAEMON_NODE_LIVE_H
#define CARMA_DAEMON_NODE_LIVE_H

#include "daemon/node.h"

struct node_live; /* what was looked at last */

struct node_live *node_live_new(void);
void node_live_free(struct node_live *live);

/* Looks at the GPUs; whether anything that is shown of them is not what it was the last time. */
bool node_live_look(struct node_live *live, const struct node *node);

/* As it was looked at. */
json_t *node_live_to_json(const struct node_live *live, const struct node *node, int64_t now_ns);

#endif
