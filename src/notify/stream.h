/* The daemon's stream of events (GET /v1/events, docs/formats/http.md), by its Unix socket. */
#ifndef CARMA_NOTIFY_STREAM_H
#define CARMA_NOTIFY_STREAM_H

#include <jansson.h>

#include "base/strbuf.h"
#include "client/http1.h"

struct stream {
    int fd; /* to be polled for reading; -1: closed */
    struct http1_reply reply;
};

/* `socket`: as client_open(). A negative errno: nothing is open. */
int stream_open(struct stream *stream, const char *socket, struct error *err);

/* Takes what has come, without waiting. A negative errno: it is over, and closed. */
int stream_read(struct stream *stream, void (*take)(void *user, const char *name, const json_t *data), void *user,
                struct error *err);

void stream_close(struct stream *stream);

#endif
