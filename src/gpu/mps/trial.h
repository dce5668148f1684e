/* Whether the control program works here, found by starting it, in a directory of its own that is gone afterwards, as
 * is the daemon. How far that tells: a server is started by its first client alone. Blocks for some ten milliseconds,
 * or a few seconds where the program hangs.
 *
 * `trials` is a caller's record of them: a file that names the directory meanwhile, and is locked. A caller that is
 * killed leaves it, and perhaps a daemon, which the next one ends first. */
#ifndef CARMA_GPU_MPS_TRIAL_H
#define CARMA_GPU_MPS_TRIAL_H

#include "base/error.h"

/* Takes the record, and ends what is left: a descriptor, or negative. -EBUSY: another process tries now. */
int mps_trials_begin(const char *record, struct error *err);
void mps_trials_end(const char *record, int trials); /* also for a negative one */

/* `trials` may be negative: there is no record. 0: a control daemon starts. -ENOENT: the program is missing. -ENOTSUP:
 * it starts none. */
int mps_try(const char *program, int trials, struct error *err);

/* The same of one server for several users: drivers from 555 on have it, for root. An older one takes the option for
 * nothing and starts no daemon, so that every job would fail later. -EPERM: only root's can. */
int mps_try_multiuser(const char *program, int trials, struct error *err);

#endif
