/* Talking to the daemon: blocking calls of its HTTP API (docs/formats/http.md) over one connection that is kept. It
 * goes by its Unix socket or, where tcp://ADDRESS:PORT is named, by TCP with the token in the file $CARMA_TOKEN_FILE
 * (base/trust/token.h). */
#ifndef CARMA_CLIENT_CLIENT_H
#define CARMA_CLIENT_CLIENT_H

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct client;

#define CLIENT_TIMEOUT_MS        60000
#define CLIENT_REPLY_LIMIT_BYTES (256 << 20)

/* Connects. NULL: $CARMA_SOCKET, else where the user's own carmad listens by default (config_default_socket), else,
 * where only that or its state is there, /run/carma/carma.sock. -ECONNREFUSED: no daemon listens there; -EACCES,
 * -EPERM: no token that may be used. */
int client_open(const char *socket_path, struct client **client, struct error *err);
void client_free(struct client *client);

/* The same with another time-out than CLIENT_TIMEOUT_MS, for the connection and for each call. */
int client_open_within(const char *socket_path, int64_t timeout_ms, struct client **client, struct error *err);

void client_rest(struct client *client); /* closes the connection between two calls: others may have its place */
const char *client_socket(const struct client *client); /* the endpoint that was opened */

/* How long one call may take in all, wall time; CLIENT_TIMEOUT_MS until it is set. */
void client_set_timeout(struct client *client, int64_t timeout_ms);

/* Sends `body` (may be NULL) and waits for the reply. 0: there is one; *status is HTTP's, *reply (a new reference) its
 * JSON, NULL where a failure came without any, and with 204. Where the daemon closed the idle connection, a new one is
 * made. But a request that may have been received is sent again only where it may be repeated: -ECONNRESET otherwise.
 * -ETIMEDOUT, -EMSGSIZE (reply too large), -EPROTO (no HTTP or no JSON). After an error the next call connects anew. */
int client_call(struct client *client, const char *method, const char *path, const json_t *body, int *status,
                json_t **reply, struct error *err);

/* Whether the request can safely be sent again: a GET, and a request that has a request_id. */
bool client_may_repeat(const char *method, const json_t *body);

#define CLIENT_REQUEST_ID_TEXT 33

/* A new id for a submission (`request_id` of POST /v1/jobs): a request that is sent again with it is done once. */
void client_request_id(char id[static CLIENT_REQUEST_ID_TEXT]);

/* 0 where the status is a success; else a negative errno for it and the reply's own sentence in err. It is -EINVAL
 * (400), -EACCES (401), -EPERM (403), -ENOENT (404), -EOPNOTSUPP (405), -EBUSY (409), -EFBIG (413), -ERANGE (422),
 * -EAGAIN (503), -ESHUTDOWN (503: the daemon is stopping, and did nothing), -CLIENT_BUSY (503: the request was not
 * looked at, others of the same user are under way), else -EIO. */
#define CLIENT_BUSY EUSERS
int client_check(int status, const json_t *reply, struct error *err);

#endif
