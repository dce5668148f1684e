/* What the server has learned of jobs, by user and workload, for administrators; and their word to take it back. */
#ifndef CARMA_DAEMON_REQUEST_LEARNED_H
#define CARMA_DAEMON_REQUEST_LEARNED_H

struct daemon;
struct http_request;

/* GET /v1/learned, POST /v1/learned/forget. Only administrators are answered. */
void learned_get(struct daemon *daemon, struct http_request *request);
void learned_forget(struct daemon *daemon, struct http_request *request);

#endif
