/* The users' shares of the GPUs and their use of late: GET /v1/share shows them, POST /v1/share gives one. */
#ifndef CARMA_DAEMON_REQUEST_SHARE_TABLE_H
#define CARMA_DAEMON_REQUEST_SHARE_TABLE_H

#include "daemon/daemon.h"
#include "http/http.h"

void share_table_get(struct daemon *daemon, struct http_request *request);

/* For administrators. */
void share_table_give(struct daemon *daemon, struct http_request *request);

#endif
