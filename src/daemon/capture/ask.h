/* The request to carma-sandbox for a job's capture (docs/automatic-capture.md). */
#ifndef CARMA_DAEMON_CAPTURE_ASK_H
#define CARMA_DAEMON_CAPTURE_ASK_H

#include "daemon/daemon.h"

#define CAPTURE_TIME_S       120
#define CAPTURE_MEMORY_BYTES (INT64_C(8) << 30)
#define CAPTURE_CORES        1
#define CAPTURE_OUTPUT_BYTES (SPEC_MAX_CAPTURE + (1 << 20)) /* with the lines of JSON */

/* The job's own command, in its directory and environment, with carma_auto before all other modules. The text is the
 * caller's to free. -EINVAL: it cannot be run so, and err says why. */
int capture_ask(const struct daemon *daemon, const struct job_view *view, char **text, struct error *err);

#endif
