/* As much of HTTP/1.1 as a client of one trusted server needs: a reply is taken in piece by piece, in any cut. */
#ifndef CARMA_CLIENT_HTTP1_H
#define CARMA_CLIENT_HTTP1_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

enum http1_state {
    HTTP1_STATUS,
    HTTP1_HEADER,
    HTTP1_BODY, /* `left` bytes */
    HTTP1_UNTIL_CLOSE,
    HTTP1_CHUNK_SIZE,
    HTTP1_CHUNK, /* `left` bytes */
    HTTP1_CHUNK_END,
    HTTP1_TRAILER,
    HTTP1_DONE
};

struct http1_reply {
    enum http1_state state;
    bool begun; /* something of it came */
    bool keep_alive;
    bool has_length;
    bool chunked;
    bool head_only; /* of a HEAD: no body follows; set it before the first byte */
    int status;
    size_t header_bytes;
    size_t left;
    size_t limit_bytes; /* of the body */
    struct strbuf line; /* the line being taken in */
    struct strbuf head; /* the lines "Name: value", each with a newline behind it */
    struct strbuf body;
};

void http1_reply_init(struct http1_reply *reply, size_t limit_bytes);
void http1_reply_release(struct http1_reply *reply);

/* Takes in received bytes. state HTTP1_DONE: complete. -EPROTO, -EMSGSIZE. */
int http1_reply_feed(struct http1_reply *reply, const char *bytes, size_t count, struct error *err);

/* The server has closed: 0 where that ends the reply, -EPROTO where it cuts it off. */
int http1_reply_close(struct http1_reply *reply, struct error *err);

#endif
