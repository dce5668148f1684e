/* The dashboard's files (web/), which lie in the program: no path that is asked for is ever looked up on the disk. They
 * hold nothing of this node, so that every client may have them; their data comes through the API. */
#ifndef CARMA_DAEMON_REQUEST_DASHBOARD_H
#define CARMA_DAEMON_REQUEST_DASHBOARD_H

#include <stdbool.h>

#include "http/http.h"

bool dashboard_has(const char *path);

/* Answers a request for a path that dashboard_has. */
void dashboard_answer(struct http_request *request);

#endif
