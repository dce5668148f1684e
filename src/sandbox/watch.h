/* Memory and processes of a sandbox without a control group that counts them, from outside. Memory that a command
 * takes between two looks is found at the second only. */
#ifndef CARMA_SANDBOX_WATCH_H
#define CARMA_SANDBOX_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/tree.h"

#define WATCH_MS 50

struct watch_sums {
    int64_t memory_bytes; /* of processes, and of the files that they wrote */
    int64_t threads;
};

/* Quick, and waits for nobody. Pages that processes share are counted to each of them; memory of no process is not
 * counted. Of more threads than the limit no more is looked at: they become more meanwhile. */
void watch_look(const struct tree_ends *ends, int64_t thread_limit, struct watch_sums *sums);

/* Counts all (unowned.h), and pages that processes share once. That may wait for the processes: a forking one holds the
 * lock on its memory. */
bool watch_exceeds(const struct tree_ends *ends, int64_t bytes);

/* Threads of all processes of the user on this machine. */
int64_t watch_threads_of(uid_t uid);

#endif
