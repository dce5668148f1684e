/* What a job says, by the GPUs of this node: estimates and recorded figures that are more than it has, the GPUs that it
 * is not to get. */
#ifndef CARMA_DAEMON_FIT_H
#define CARMA_DAEMON_FIT_H

#include "core/core.h"

/* More than the GPUs have then means all of their memory. The recorded figure 40000 MiB means "fills the GPU", and an
 * estimate with its margin is not a reason to refuse a job. A person's declaration is. */
void fit_request(const struct core *core, struct record_submitted *wants);

/* The GPUs that a job is not to get (exclude_gpu; NULL: none), as in record_submitted. -EINVAL: one is not there. */
int fit_excluded(const struct core *core, const char *list, uint64_t *excluded, struct error *err);

#endif
