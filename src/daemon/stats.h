/* What jobs have used, summed up. */
#ifndef CARMA_DAEMON_STATS_H
#define CARMA_DAEMON_STATS_H

#include "daemon/daemon.h"

json_t *stats_by_user(const struct daemon *daemon); /* docs/formats/http.md, GET /v1/stats */

#endif
