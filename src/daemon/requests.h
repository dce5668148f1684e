/* The API's requests (docs/formats/http.md): who may do what, and what it means to the core. */
#ifndef CARMA_DAEMON_REQUESTS_H
#define CARMA_DAEMON_REQUESTS_H

#include "daemon/daemon.h"
#include "http/http.h"

/* A number of at most so many digits; `otherwise` where there is no text. False: it is no such number. */
bool requests_read_number(const char *text, size_t digits, uint64_t otherwise, uint64_t *number);

void requests_handle(struct http_request *request, void *daemon);

#endif
