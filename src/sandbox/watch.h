/* Memory and processes of a sandbox without a control group that counts them, from outside. What a command takes
 * between two looks is found at the second only. */
#ifndef CARMA_SANDBOX_WATCH_H
#define CARMA_SANDBOX_WATCH_H

#include <stdint.h>

#include "sandbox/tree.h"

#define WATCH_MS 50

struct watch_sums {
    int64_t memory_bytes; /* of processes, and of the files that they wrote */
    int64_t threads;
};

/* `memory_limit`: pages that processes share are counted to each of them unless the sum is above it. */
void watch_look(const struct tree_ends *ends, int64_t memory_limit, struct watch_sums *sums);

#endif
