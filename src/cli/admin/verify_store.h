/* Whether a daemon's store is whole: the check of carma admin verify and carma doctor. */
#ifndef CARMA_CLI_ADMIN_VERIFY_STORE_H
#define CARMA_CLI_ADMIN_VERIFY_STORE_H

#include <stdint.h>

#include "base/error.h"

struct verify_counts {
    uint64_t submissions, jobs, records, snapshots;
};

/* Only reads; a daemon may be at work. An error names the damaged part. */
int verify_store(const char *directory, struct verify_counts *counts, struct error *err);

#endif
