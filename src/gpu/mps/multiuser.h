/* Whether the control program can run one server for several users: drivers from 555 on do, for root. An older one
 * takes the option for nothing and starts no daemon, so that every job would fail later. */
#ifndef CARMA_GPU_MPS_MULTIUSER_H
#define CARMA_GPU_MPS_MULTIUSER_H

#include "base/error.h"

/* Tries it, in a directory of its own that is gone afterwards, as is the daemon. 0: it can. -EPERM: only root's can.
 * -ENOENT: the program is missing. -ENOTSUP: it cannot. Blocks for some ten milliseconds, or a few seconds where the
 * program hangs. */
int mps_multiuser_check(const char *program, struct error *err);

#endif
