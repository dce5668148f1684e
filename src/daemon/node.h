/* The node's GPUs: what carma-monitor reads becomes records, and what people are shown. */
#ifndef CARMA_DAEMON_NODE_H
#define CARMA_DAEMON_NODE_H

#include "daemon/daemon.h"

struct node *node_new(struct daemon *daemon);

/* What energy the store remembers (energy.h), once its records are applied: whose it was, and how far it was counted. */
int node_load_energy(struct node *node, struct error *err);

/* Ends the watching; what energy was shared out since the last time is handed to the store, which must still be open. */
void node_stop(struct node *node);
void node_free(struct node *node);

/* Starts carma-monitor; what it reads becomes inputs. */
void node_watch(struct node *node);

/* Feeds the core the readings that it wants, as inputs of the engine's current turn. */
void node_feed_samples(struct node *node);

/* Who is on which GPU may have changed: from now on energy is shared among those who are. */
void node_follow_residents(struct node *node);

/* What jobs are estimated for: the configured machine profile, else that of the node's first GPU that has one, else the
 * default; with the memory that the node's largest GPU has. */
void node_machine_profile(struct node *node, struct machine_profile *profile);

json_t *node_to_json(const struct node *node); /* docs/formats/http.md, GET /v1/gpus */

/* The node's energy that is no job's: by nobody, and by foreign processes; all as counted, in mJ. */
struct node_energy {
    int64_t idle_mj;
    int64_t foreign_mj;
};
struct node_energy node_energy_of_nobody(const struct node *node);

#endif
