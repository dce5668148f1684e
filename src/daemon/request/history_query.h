/* Questions about ended jobs (docs/formats/history.md): GET /v1/history and GET /v1/stats; and about scripts. They are
 * read from the store by threads of libuv's pool, never by the loop; few at a time, and none for long. */
#ifndef CARMA_DAEMON_REQUEST_HISTORY_H
#define CARMA_DAEMON_REQUEST_HISTORY_H

#include "daemon/daemon.h"
#include "http/http.h"

#define HISTORY_AT_ONCE   2    /* questions that are being answered: the pool has threads left for submissions */
#define HISTORY_PER_UID   4    /* of one user, being answered or waiting */
#define HISTORY_IN_ALL    32   /* of all */
#define HISTORY_WALL_S    10   /* how long one may take */
#define HISTORY_MOST_ROWS 1000 /* of one answer */

struct history_queries *history_new(struct daemon *daemon);

/* Ends the current answers and answers the waiting ones; the memory goes once the loop has run the rest. */
void history_close(struct history_queries *queries);

/* `rest`: the path after /v1/history. */
void history_get(struct daemon *daemon, struct http_request *request, const char *rest);

/* The script of a job, which its submission has. */
void history_get_script(struct daemon *daemon, struct http_request *request, uint64_t job);

void history_get_stats(struct daemon *daemon, struct http_request *request);

#endif
