/* A virtual GPU node through its state file (layout in vnode/layout.h, document docs/formats/vnode-state.md).
 *
 * Everything here is safe inside another program's process: it allocates nothing, never aborts, and waits for a bounded
 * time. Threads may share a struct node; a forked child may go on using its parent's. Functions return 0 or a negative
 * errno; -ETIMEDOUT: somebody held the node's lock for longer than NODE_LOCK_WALL_NS. */
#ifndef CARMA_VNODE_NODE_H
#define CARMA_VNODE_NODE_H

#include <pthread.h>
#include <sys/types.h>

#include "base/error.h"
#include "vnode/layout.h"

#define NODE_LOCK_WALL_NS INT64_C(1000000000)

struct node {
    struct node_file *file; /* mapped; NULL while closed */
    int fd;
    pid_t locker; /* the process that holds fd's lock: after a fork the child needs one of its own */
    pthread_mutex_t threads;
};

/* Makes the state file of a new node. `wanted` holds the fixed members (counts, GPUs, versions, profile); all others
 * are filled in: UUIDs, serials, time scale, clocks. -EEXIST when a file of that name exists. */
int node_create(const char *path, const struct node_file *wanted, int mode, struct error *err);

/* Opens the node that `path` (NULL: $CARMA_VNODE) names. */
int node_open(struct node *node, const char *path, struct error *err);
void node_close(struct node *node);

/* The node's clock: the time since boot, at the scale with which the node was made, not this process's own. */
int64_t node_now_ns(const struct node *node);

/* Takes the lock and gives the state as of now, to be changed; owners that died are gone from it. */
int node_begin(struct node *node, struct node_bank **bank);
void node_commit(struct node *node);  /* makes the changes count, wakes processes with a new rate; unlocks */
void node_abandon(struct node *node); /* forgets the changes; unlocks */

/* Sleeps until some process's rate changed since `generation` was read from file->generation, at most wall_ns. */
void node_wait(struct node *node, uint32_t generation, int64_t wall_ns);

/* Ends every node_wait, also one that is about to begin; may be called in a signal handler. */
void node_wake(struct node *node);

#endif
