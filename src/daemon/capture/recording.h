/* One job's capture: the cached one where its files are as they were, else a new one, which is cached. */
#ifndef CARMA_DAEMON_CAPTURE_RECORDING_H
#define CARMA_DAEMON_CAPTURE_RECORDING_H

#include <stdbool.h>

#include "daemon/daemon.h"

enum capture_outcome {
    CAPTURE_ESTIMATED,
    CAPTURE_NOTHING, /* it ran, and no training step was recorded that an estimate could be made of */
    CAPTURE_FAILED,  /* it did not run to its end */
    CAPTURE_DROPPED, /* the job ended before */
    CAPTURE_REUSED,  /* a cached one told the estimate, or why there is none */
    CAPTURE_OUTCOMES
};

struct recording;

/* `fresh`: a cached one need not be checked. `ended` is called once on the loop, after this has
 * returned; the recording is freed then. The program is borrowed until then. So is `missing`: the reason, accepted by
 * the user, why there is no sandbox; NULL: there is one. */
struct recording *recording_new(struct daemon *daemon, char *program, const char *missing, const struct job_view *view,
                                uint64_t key, bool fresh, void (*ended)(uint32_t outcome, void *user), void *user);

/* Nobody needs it any more: nothing of it runs on. It ends now, or when its thread has; the daemon's state is not
 * touched again. */
void recording_drop(struct recording *recording);

#endif
