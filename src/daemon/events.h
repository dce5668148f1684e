/* GET /v1/events (docs/formats/http.md): what changes, told to who watches.
 *
 * Nothing is done while nobody does. Once a second of wall time it is looked at what has changed since; who has not taken
 * yet what he was told is told the sum of it later. A change is told in turns of bounded size, the latest last. */
#ifndef CARMA_DAEMON_EVENTS_H
#define CARMA_DAEMON_EVENTS_H

#include "daemon/daemon.h"
#include "http/http.h"

struct events *events_new(struct daemon *daemon);
void events_free(struct events *events); /* ends the streams; before the HTTP server and the node are freed */

/* Answers the request with a stream, or refuses it. */
void events_open(struct events *events, struct http_request *request);

#endif
