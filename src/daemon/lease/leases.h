/* Leases: GPUs for processes that Slurm starts. Its plugin asks for them (docs/formats/http.md). A lease is a job of
 * the core. Its key is (cluster, job, restart, node): whoever asks again gets the same lease.
 *
 * Only uid 0 on the Unix socket may ask: a lease names a user, and the kernel vouches for nobody but the caller. */
#ifndef CARMA_DAEMON_LEASE_LEASES_H
#define CARMA_DAEMON_LEASE_LEASES_H

#include "daemon/daemon.h"
#include "http/http.h"

struct leases;

struct leases *leases_new(struct daemon *daemon);
void leases_free(struct leases *leases); /* after the HTTP server */

/* `rest` is the path behind "leases". */
void leases_handle(struct leases *leases, struct http_request *request, const char *rest);

/* Largest requests that fit now: of any local user. */
void leases_get_capacity(struct leases *leases, struct http_request *request);

/* Answers each request that waits for a lease, once the lease has the awaited state. Called at the end of each turn. */
void leases_look(struct leases *leases);

#endif
