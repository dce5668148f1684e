/* The API's requests (docs/formats/http.md): who may do what, and what it means to the core. */
#ifndef CARMA_DAEMON_REQUESTS_H
#define CARMA_DAEMON_REQUESTS_H

#include "daemon/daemon.h"
#include "http/http.h"

void requests_handle(struct http_request *request, void *daemon);

#endif
