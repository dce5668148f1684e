/* The node's progress with time: work, power, SM activity. Pure on one bank; safe inside another program's process. */
#ifndef CARMA_VNODE_PHYSICS_H
#define CARMA_VNODE_PHYSICS_H

#include <stdint.h>

#include "vnode/layout.h"

/* Brings the bank to now_ns. Starts and ends of training in between take effect at their own moments, however late
 * somebody looks. So the result does not depend on how promptly the processes were scheduled. A clock that went
 * backwards adds nothing. */
void physics_advance(const struct node_file *file, struct node_bank *bank, int64_t now_ns);

/* Rates, SM activity and busy share from the present processes; to be called after a change of the slots. */
void physics_recompute(const struct node_file *file, struct node_bank *bank);

/* Memory held on a GPU by all processes. */
int64_t physics_used_bytes(const struct node_bank *bank, uint32_t gpu);

/* The same of one place: `instance` as in struct node_use. */
int64_t physics_instance_used_bytes(const struct node_bank *bank, uint32_t gpu, uint32_t instance);

/* Memory that processes can use there. */
int64_t physics_usable_bytes(const struct node_file *file, uint32_t gpu, uint32_t instance);

/* The process's share of time with a kernel running on a GPU (0..1); its `busy` is the sum of these. */
double physics_busy_share(const struct node_slot *slot, const struct node_use *use);

#endif
