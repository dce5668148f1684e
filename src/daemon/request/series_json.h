/* GET /v1/series and /v1/jobs/ID/series (docs/formats/http.md). */
#ifndef CARMA_DAEMON_REQUEST_SERIES_JSON_H
#define CARMA_DAEMON_REQUEST_SERIES_JSON_H

#include "daemon/daemon.h"
#include "daemon/node/series.h"

struct series *series_for(const struct daemon *daemon); /* by its configuration */

/* JSON as text, since it may be hundreds of thousands of numbers; owned by the caller. span_s and points are more than
 * 0. */
char *series_of_gpus(const struct daemon *daemon, int64_t span_s, int64_t points, int64_t now_ns);
char *series_of_job(const struct daemon *daemon, uint64_t job);

#endif
