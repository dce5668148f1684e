/* Whether a failed job's output says that GPU memory ran out. Pure: text in, verdict out.
 *
 * The patterns and what only looks like one are listed, with their origin, in classify.c. To be asked only about jobs
 * that failed: frameworks that catch the error and go on exit with 0. */
#ifndef CARMA_LAUNCH_CLASSIFY_H
#define CARMA_LAUNCH_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct classify_verdict {
    bool gpu_oom;
    int64_t requested_bytes; /* of the latest message that says it; -1: none does */
    int64_t free_bytes;      /* likewise */
    char line[200];          /* the latest message's beginning, as written */
};

/* Any bytes are allowed, NULs included; time is linear in `length`. */
void classify_output(const char *text, size_t length, struct classify_verdict *verdict);

#endif
