/* Faults of the driver that are in force on a node: its NVML library checks them before it answers. Safe inside a
 * unmanaged process; takes no lock. To add one: its kind here, its effect where NVML answers, and its line in
 * inject.c. */
#ifndef CARMA_VNODE_FAULT_H
#define CARMA_VNODE_FAULT_H

#include <stdbool.h>

#include "vnode/node.h"

enum node_fault_kind { /* numbers of the state file's format */
                       NODE_FAULT_GPU_LOST = 0,
                       NODE_FAULT_HANG = 1,
                       NODE_FAULT_DRIVER_GONE = 2,
                       NODE_FAULT_NO_PERMISSION = 3,
                       NODE_FAULT_HIDE_MEMORY = 4,
                       NODE_FAULT_HIDE_PROCESSES = 5,
                       NODE_FAULT_R535 = 6,
                       NODE_FAULT_BLANK = 7,
                       NODE_FAULT_OVER_RANGE = 8,
                       NODE_FAULT_STUCK_ZERO = 9,
                       NODE_FAULT_NO_POWER = 10,
                       NODE_FAULT_NO_ENERGY = 11,
                       NODE_FAULT_HOT = 12,
                       NODE_FAULT_ECC = 13,
                       NODE_FAULT_KINDS
};

/* Bits of all the node's GPUs. */
uint32_t fault_all_gpus(const struct node *node);

/* The GPUs (bit g: GPU g) on which the fault is in force. */
uint32_t fault_gpus(const struct node *node, enum node_fault_kind kind);

/* Whether it is on this one. */
bool fault_on(const struct node *node, enum node_fault_kind kind, uint32_t gpu);

/* From now on, until node time until_ns (INT64_MAX: until it is cleared); gpus 0: no longer. */
void fault_set(struct node *node, enum node_fault_kind kind, uint32_t gpus, int64_t until_ns);

/* The code with which this call (any of its versions) has to fail on all of these GPUs; 0: none. */
int fault_of_call(const struct node *node, const char *call, uint32_t gpus);

/* Has a call fail, as fault_set() does. 0, or -EINVAL: no such name can be; -ENOSPC: too many fail already. */
int fault_set_call(struct node *node, const char *call, int code, uint32_t gpus, int64_t until_ns);

/* Reports an Xid, also to callers that wait for NVML's events. `pid`: of the process that caused it, 0: none. 0 or a
 * negative errno. */
int fault_xid(struct node *node, uint32_t gpu, uint32_t instance, uint32_t xid, int32_t pid);

#endif
