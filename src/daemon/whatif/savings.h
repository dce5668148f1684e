/* What sharing has saved of late: the node's last days simulated as it is set, and with one job a GPU. All of it is
 * simulated, also the days as they were, so that like is compared with like. Format: docs/formats/http.md (`saved`). */
#ifndef CARMA_DAEMON_WHATIF_SAVINGS_H
#define CARMA_DAEMON_WHATIF_SAVINGS_H

#include <jansson.h>
#include <stdint.h>

#define SAVINGS_DAYS       7
#define SAVINGS_LEAST_JOBS 10 /* fewer say little */

/* From carma simulate's outcomes under two policies: the present one, then `exclusive`. A new reference. */
json_t *savings_to_json(const json_t *outcomes, int64_t at_ns);

/* Where there are none: why. A new reference. */
json_t *savings_unknown(const char *why, int64_t at_ns);

#endif
