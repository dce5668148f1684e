/* Estimates and recorded figures that are more than this node has. */
#ifndef CARMA_DAEMON_FIT_H
#define CARMA_DAEMON_FIT_H

#include "core/core.h"

/* More than the GPUs have then means all of their memory. The recorded figure 40000 MiB means "fills the GPU", and an
 * estimate with its margin is not a reason to refuse a job. A person's declaration is. */
void fit_request(const struct core *core, struct record_submitted *wants);

#endif
