/* Jobs' wants, except their workload, are equal for thousands of jobs: they are kept once. */
#ifndef CARMA_CORE_COMMON_WANTS_H
#define CARMA_CORE_COMMON_WANTS_H

#include "core/record.h"

struct common_wants; /* uthash; NULL: none. It goes with its last user */

/* Equal in every member but the workload, which is empty. */
const struct record_submitted *common_wants_join(struct common_wants **all, const struct record_submitted *wants);

void common_wants_leave(struct common_wants **all, const struct record_submitted *wants); /* may be NULL */

#endif
