/* A process on the node's GPUs, in the place of the CUDA driver. */
#ifndef CARMA_VNODE_ATTACH_H
#define CARMA_VNODE_ATTACH_H

#include <stdbool.h>

#include "vnode/node.h"
#include "vnode/numbering.h"

struct attachment {
    struct node *node;
    uint32_t slot;
    int32_t pid;
    uint64_t start_ticks;
    int64_t limits[NODE_MAX_GPUS]; /* of memory on each of its GPUs, for its owner to set; 0: none */
};

/* Why memory was refused, for the message that follows. */
struct shortage {
    uint32_t use;         /* which of the process's places */
    int64_t wanted_bytes; /* in addition to the process's present memory */
    int64_t held_bytes;   /* by this process there */
    int64_t total_bytes;  /* that jobs can use */
    int64_t free_bytes;
    uint32_t neighbour_count;
    struct neighbour {
        int32_t pid;
        int64_t bytes;
    } neighbours[NODE_MAX_SLOTS];
};

/* A GPU, or a MIG instance of one, as struct node_use has them. */
struct place {
    uint32_t gpu;
    uint32_t instance;
};

/* The places that a process may use by CUDA's rules. `visible` (of CUDA_VISIBLE_DEVICES) is a list of indices, as
 * `numbering` counts (NULL: as the node does), or UUIDs or unique beginnings of UUIDs, separated by commas. Entries
 * after the first invalid one do not count. NULL: all whole GPUs. MIG: an instance by its UUID; a GPU in MIG mode means
 * its first one; a process can use one instance, and nothing beside it. */
uint32_t attach_visible(const struct node_file *file, const struct numbering *numbering, const char *visible,
                        struct place places[static NODE_MAX_GPUS]);

/* The MPS control daemon that a CUDA process would come through. It is the identity of the `control` pipe in the
 * directory (of CUDA_MPS_PIPE_DIRECTORY), the same for every user and path. 0: NULL, empty, no such pipe there, or a
 * socket without a listener. */
uint64_t attach_mps_domain(const char *pipe_directory);

/* The limits, in bytes, on the `count` places that a process sees, by the value of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT
 * ("0=12G,1=3073M"; may be NULL): keys are numbers of its places or UUIDs. 0: none. */
void attach_memory_limits(const struct node_file *file, const char *value, const struct place *places, uint32_t count,
                          int64_t limits[static NODE_MAX_GPUS]);

/* Puts this process on the node, with `wanted`'s uses, mps, mps_domain, work_ns, done_ns and train_from_ns; it will
 * train from then on where work_ns > 0. */
int attach_begin(struct attachment *attachment, struct node *node, const struct node_slot *wanted, struct error *err);

/* Leaves the node: memory and all. */
void attach_end(struct attachment *attachment);

/* Holds bytes[k] on the process's k-th GPU from now on, on all of them or on none. -ENOMEM: it does not fit, *shortage
 * says why. */
int attach_hold(struct attachment *attachment, const int64_t *bytes, struct shortage *shortage, struct error *err);

/* Ends the process's work, done or not; it keeps its memory. */
int attach_idle(struct attachment *attachment, struct error *err);

/* Where the process is now. */
int attach_look(struct attachment *attachment, struct node_slot *slot, int64_t *now_ns, struct error *err);

#endif
