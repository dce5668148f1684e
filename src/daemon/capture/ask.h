/* Requests to carma-sandbox: for a job's capture, and for the digests of the files that a cached one depends on
 * (docs/automatic-capture.md). */
#ifndef CARMA_DAEMON_CAPTURE_ASK_H
#define CARMA_DAEMON_CAPTURE_ASK_H

#include <jansson.h>

#include "api/capture_request.h"
#include "daemon/view/view.h"

#define DIGESTS_TIME_S       20
#define DIGESTS_OUTPUT_BYTES (256 << 10)

/* The job's own command, in its directory and environment, with carma_auto before all other modules. The text is the
 * caller's to free. `bare`: no sandbox can be had, and the user wants it all the same. -EINVAL: it cannot be run so,
 * and err says why. */
int capture_ask(const struct job_view *view, bool bare, char **text, struct error *err);

/* Prints the digests of these files, as the job's user sees them (daemon/capture/digests.h). The caller's to free.
 */
char *capture_ask_digests(const struct job_view *view, bool bare, const json_t *digests);

#endif
