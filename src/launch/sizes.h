/* The amounts that a message of GPU memory states. Pure. */
#ifndef CARMA_LAUNCH_SIZES_H
#define CARMA_LAUNCH_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "launch/classify.h"

/* A piece of a text; not NUL-terminated. */
struct span {
    const char *text;
    size_t length;
};

int64_t sizes_requested(struct span message); /* size of the failed allocation; -1: unknown */
int64_t sizes_free(struct span message);      /* likewise */
void sizes_tenants(struct span message, struct classify_verdict *verdict);

#endif
