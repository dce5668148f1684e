/* The whole state as a few records: a store keeps them instead of a long log. */
#ifndef CARMA_CORE_SNAPSHOT_H
#define CARMA_CORE_SNAPSHOT_H

#include "core/core.h"

/* Appends records which, applied in order to a new core, give this one's state: equal dumps, and equal decisions on
 * equal input. The first is a RECONFIGURED, the others are of the types STATE_*, which core_apply takes only there. */
void core_snapshot(const struct core *core, int64_t at_ns, struct record_list *out);

/* The same of some jobs: those that have GPUs, or have any reserved, and others that depend on none which it lacks. Of
 * workloads only those of which something is known. */
void core_snapshot_of(const struct core *core, int64_t at_ns, bool (*takes)(const struct job *job, void *data),
                      void *data, struct record_list *out);

/* Whether the restored state is a possible one: a damaged store must not become a core that fails later. -EINVAL: which
 * job or GPU contradicts itself. To be asked once after the records of a snapshot. */
int core_check(const struct core *core, struct error *err);

/* Applies one of STATE_* to a core to which only such records and a RECONFIGURED have been applied. -EPERM at any other
 * time, -EINVAL for a state that no core can reach. Called by core_apply. */
int snapshot_apply(struct core *core, const struct record *record, struct error *err);

#endif
