/* GET /v1/status (docs/formats/http.md). */
#ifndef CARMA_DAEMON_REQUEST_STATUS_H
#define CARMA_DAEMON_REQUEST_STATUS_H

#include "daemon/daemon.h"

json_t *status_to_json(const struct daemon *daemon, int64_t now_ns);

#endif
