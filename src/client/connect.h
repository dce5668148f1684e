/* Where a daemon listens, and connecting to it: a Unix socket's path, or tcp://ADDRESS:PORT. */
#ifndef CARMA_CLIENT_CONNECT_H
#define CARMA_CLIENT_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The host and port behind tcp://; NULL: it is a path. */
const char *connect_tcp_of(const char *place);

/* A connected, non-blocking socket. -ECONNREFUSED: nobody listens there; -ETIMEDOUT (without a text in err): not
 * connected at `deadline_ns` (monotonic wall time). */
int connect_to(const char *place, int64_t deadline_ns, int *fd, struct error *err);

#endif
