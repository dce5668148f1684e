/* GET /v1/jobs: a list of jobs, made a piece at a time, so that others are answered meanwhile. */
#ifndef CARMA_DAEMON_REQUEST_LISTING_H
#define CARMA_DAEMON_REQUEST_LISTING_H

#include "daemon/daemon.h"
#include "http/http.h"

#define LISTING_MOST 10000 /* jobs of one answer; the next begins behind its last (`after`) */

struct listings;

struct listings *listings_new(struct daemon *daemon);
void listings_free(struct listings *listings); /* waiting clients are told that carmad stops; run the loop until its
                                                  timers are closed */
void listings_get(struct listings *listings, struct http_request *request);

#endif
