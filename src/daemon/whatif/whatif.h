/* The node's own past as if it had run under other policies: `carma simulate`, as a child of low priority. It works
 * on the daemon's own store, which it only reads. Its answers are sums and means over all jobs: anybody may ask.
 * Formats: docs/formats/http.md. */
#ifndef CARMA_DAEMON_WHATIF_WHATIF_H
#define CARMA_DAEMON_WHATIF_WHATIF_H

#include "daemon/daemon.h"
#include "http/http.h"

#define WHATIF_POLICIES_MAX    12
#define WHATIF_SETTINGS_MAX    16
#define WHATIF_STEPS           300 /* of each policy's time line */
#define WHATIF_KEPT            8   /* answers */
#define WHATIF_WAITING         8   /* questions, besides the one that is being simulated */
#define WHATIF_WAITING_PER_UID 2
#define WHATIF_TIME_LIMIT_S    300                /* wall time */
#define WHATIF_MEMORY_LIMIT    (INT64_C(4) << 30) /* bytes of the child */
#define WHATIF_OUTPUT_LIMIT    (1 << 20)
#define WHATIF_INCOMPLETE      3 /* status of a simulation in which some job did not complete (docs/formats/cli.md) */

struct whatif *whatif_new(struct daemon *daemon);

/* Kills the running ones; their handles on the loop end as the loop is run again. */
void whatif_free(struct whatif *whatif);

void whatif_ask(struct whatif *whatif, struct http_request *request);                  /* POST /v1/whatif */
void whatif_show(struct whatif *whatif, struct http_request *request, const char *id); /* GET /v1/whatif/ID */

/* What sharing has saved (whatif/savings.h), as last simulated; null: not yet. It is looked at about once an hour, as a
 * question of the daemon's own among those of users. A new reference. */
json_t *whatif_saved_to_json(const struct whatif *whatif);

#endif
