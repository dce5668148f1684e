/* Which GPU of a virtual node a process means by a number, and so by an index in CUDA_VISIBLE_DEVICES.
 *
 * A client of an MPS server counts in the server's list, the CUDA_VISIBLE_DEVICES of its control daemon. Any other
 * process counts the GPUs whose device node it may open, in the node's order. A virtual GPU has a node only where
 * somebody made it: STATE.dev/nvidiaN (character device 195:N, as /dev/nvidiaN), which need not be opened to ask the
 * kernel's device filters. Without one a GPU counts. */
#ifndef CARMA_VNODE_NUMBERING_H
#define CARMA_VNODE_NUMBERING_H

#include "vnode/layout.h"

/* A line to the virtual control daemon, which answers its list; NVIDIA's tells its clients in a way of its own. */
#define NUMBERING_QUESTION "virtual_devices"

/* What precedes each answer of the virtual control daemon: an empty packet could not be told from one that is gone. */
#define NUMBERING_ANSWERED '+'

struct numbering {
    uint32_t count;
    uint32_t gpus[NODE_MAX_GPUS]; /* of number 0, 1, ... */
};

/* All GPUs, as NVML has them. */
void numbering_of_node(const struct node_file *file, struct numbering *numbering);

/* This process's. `state`: the node's file; `pipe_directory`: of the MPS control daemon that it comes through, or
 * NULL. */
void numbering_of_process(const struct node_file *file, const char *state, const char *pipe_directory,
                          struct numbering *numbering);

#endif
