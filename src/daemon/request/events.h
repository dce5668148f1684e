/* GET /v1/events (docs/formats/http.md): changes, told to watchers.
 *
 * Nothing is done while nobody does. Once a second of wall time the changes are collected; a watcher that has not taken
 * the last ones yet gets their sum later. A change is told in turns of bounded size, the latest last. */
#ifndef CARMA_DAEMON_REQUEST_EVENTS_H
#define CARMA_DAEMON_REQUEST_EVENTS_H

#include "daemon/daemon.h"
#include "http/http.h"

struct events *events_new(struct daemon *daemon);
void events_free(struct events *events); /* ends the streams; before the HTTP server and the node are freed */

/* Answers the request with a stream, or refuses it. */
void events_open(struct events *events, struct http_request *request);

#endif
