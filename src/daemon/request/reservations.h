/* POST /v1/gpus/reserve and unreserve: an administrator reserves GPUs for users from a time to another, and takes that
 * back (core/gpus/allotment.h). GET /v1/gpus lists reservations. */
#ifndef CARMA_DAEMON_REQUEST_RESERVATIONS_H
#define CARMA_DAEMON_REQUEST_RESERVATIONS_H

#include "daemon/daemon.h"
#include "http/http.h"

void reservations_make(struct daemon *daemon, struct http_request *request);
void reservations_take_back(struct daemon *daemon, struct http_request *request);

#endif
