/* Taking jobs in: all of a request or none. */
#ifndef CARMA_DAEMON_SUBMISSION_H
#define CARMA_DAEMON_SUBMISSION_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/daemon.h"

#define SUBMISSION_MAX_JOBS 10000 /* of one request */

/* Body: {"jobs": [spec, ...]}. 201: the jobs are inputs of the engine's current turn, *ids is [{"id": n}, ...] (a new
 * reference); else the HTTP status of the refusal, err saying why, and nothing was changed. */
int submission_accept(struct daemon *daemon, uid_t uid, const char *body, size_t length, json_t **ids,
                      struct error *err);

#endif
