/* Whether the control program works here, found by starting it, in a directory of its own that is gone afterwards, as
 * is the daemon. How far that tells: a server is started by its first client alone. Blocks for some ten milliseconds,
 * or a few seconds where the program hangs. */
#ifndef CARMA_GPU_MPS_TRIAL_H
#define CARMA_GPU_MPS_TRIAL_H

#include "base/error.h"

/* 0: a control daemon starts. -ENOENT: the program is missing. -ENOTSUP: it starts none. */
int mps_try(const char *program, struct error *err);

/* The same of one server for several users: drivers from 555 on have it, for root. An older one takes the option for
 * nothing and starts no daemon, so that every job would fail later. -EPERM: only root's can. */
int mps_try_multiuser(const char *program, struct error *err);

#endif
