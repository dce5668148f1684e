/* Parts of the leases: requests and their waiting (leases.c), answers (leases_json.c). */
#ifndef CARMA_DAEMON_LEASE_LEASES_INTERNAL_H
#define CARMA_DAEMON_LEASE_LEASES_INTERNAL_H

#include <jansson.h>

#include "daemon/lease/leases.h"
#include "launch/launch.h"

/* The answers of docs/formats/http.md; new references. */
json_t *lease_placed_to_json(const struct daemon *daemon, const struct job_view *view,
                             const struct launch_status *status,
                             struct error *err); /* NULL: its variables cannot be read */
json_t *lease_end_to_json(const struct daemon *daemon, const struct job_view *view);
json_t *lease_to_json(const struct daemon *daemon, const struct job_view *view);
json_t *lease_refusal_to_json(const char *text, const char *code, bool never);
json_t *lease_capacity_to_json(const struct daemon *daemon);

#endif
