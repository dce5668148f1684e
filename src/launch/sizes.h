/* The amounts that a message of GPU memory states. Pure. */
#ifndef CARMA_LAUNCH_SIZES_H
#define CARMA_LAUNCH_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define CLASSIFY_MAX_TENANTS 8

/* Another process that the message names, with its memory on the GPU. */
struct classify_tenant {
    int32_t pid;
    int64_t used_bytes;
};

/* A piece of a text; not NUL-terminated. */
struct span {
    const char *text;
    size_t length;
};

int64_t sizes_requested(struct span message); /* size of the failed allocation; -1: unknown */
int64_t sizes_free(struct span message);      /* likewise */
uint32_t sizes_tenants(struct span message, struct classify_tenant tenants[static CLASSIFY_MAX_TENANTS]); /* how many */

#endif
