/* The API's requests (docs/formats/http.md): the rights they need, and their records for the core. */
#ifndef CARMA_DAEMON_REQUEST_REQUESTS_H
#define CARMA_DAEMON_REQUEST_REQUESTS_H

#include "daemon/daemon.h"
#include "http/http.h"

/* A number of at most `digits` digits; `otherwise` where the text is missing. False: not such a number. */
bool requests_read_number(const char *text, size_t digits, uint64_t otherwise, uint64_t *number);

void requests_handle(struct http_request *request, void *daemon);

/* Bytes that the body of such a request may have. */
size_t requests_body_limit(const char *method, const char *path);

#endif
