/* HTTP/1.1 over a Unix socket, and over TCP where that is asked for, on the caller's libuv loop: nothing here waits for
 * a client. The API that is served is the caller's; requests and replies are JSON (docs/formats/http.md).
 *
 * The socket's peer credentials tell the caller's user; over TCP it is the owner of the token's file, for callers that
 * show the token. A client can hold no more than its share. Connections are capped per uid and in all, and users that
 * open them fast come after the others. A request's header and body are bounded; so are the bodies under way of one
 * uid, and of all, together. An idle connection is closed, and so is one that takes too long in all. Complete requests
 * are handed over one of each uid in turn. All that come by TCP share like one uid. Requests are refused that could be
 * read in two ways, that come from web pages, or that name a host from a browser's look-up. By TCP, where the token is
 * asked for, the server's own pages may call.
 *
 * An answer may also be a stream: it goes on until one of the two has enough. Streams are few, per uid and in all. Data
 * that was sent and not taken is bounded, and so is the time that it may stay there. A client that does not read is cut
 * off. */
#ifndef CARMA_HTTP_HTTP_H
#define CARMA_HTTP_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"

struct http_server;
struct http_stream;

/* A complete request. All of it is valid until http_reply. */
struct http_request {
    const char *method;
    const char *path; /* without the query; percent-decoded, so it may hold any byte but NUL */
    const char *body; /* NUL-terminated, "" where there is none; not checked to be JSON or UTF-8 */
    size_t body_length;
    uid_t uid; /* the peer, when it connected; by TCP the token's owner */
    pid_t pid; /* by TCP 0 */
};

#define HTTP_BODY_LIMIT_BYTES   (16 << 20) /* a job with all texts at their limits, or a thousand small ones */
#define HTTP_SMALL_BODY_BYTES   (64 << 10) /* where nobody needs more */
#define HTTP_HEADER_LIMIT_BYTES (64 << 10)
#define HTTP_IDLE_TIMEOUT_S     30
#define HTTP_TRANSFER_LIMIT_S                                                                                          \
    120 /* from a connection's begin, or the last answer, to a whole request; and for an answer */
#define HTTP_MAX_CONNECTIONS         512 /* a process has 1024 descriptors by default */
#define HTTP_MAX_CONNECTIONS_PER_UID 128
#define HTTP_CONNECTS_PER_S                                                                                            \
    200                              /* of one uid, and as many at once; more of them wait until no other user         \
                                        does */
#define HTTP_BACKLOG             256 /* connections in the kernel's queue: a newcomer waits for those before it */
#define HTTP_MAX_PARKED          64  /* connections that wait so, */
#define HTTP_MAX_PARKED_PER_UID  32  /* of one uid */
#define HTTP_MAX_INHERITED       4   /* listening sockets */
#define HTTP_PLACE_TEXT          112 /* enough for the name of one */
#define HTTP_BODIES_PER_UID      4   /* full-sized bodies that one uid may have under way */
#define HTTP_BODIES_IN_ALL       16  /* and all uids */
#define HTTP_UNTAKEN_PER_UID     (32 << 20) /* bytes of answers; beyond, that uid's next requests wait */
#define HTTP_MAX_STREAMS         32
#define HTTP_MAX_STREAMS_PER_UID 8
#define HTTP_STREAM_LIMIT_BYTES  (8 << 20) /* sent on one stream and not taken yet */

/* A zero means the default above. */
struct http_options {
    uv_loop_t *loop;
    const char *socket_path;             /* its directory is made where it is not there */
    const char *tcp_address;             /* base/address.h; NULL: not by TCP */
    const char *token_file;              /* base/trust/token.h; with TCP */
    bool (*is_public)(const char *path); /* the answer over TCP without the token, to requests without a body; NULL:
                                            nothing */
    /* Listening sockets made by another process, one after the other; they are taken over, also on failure. Those of a
     * kind, Unix or TCP, replace the addresses above; the file of a Unix one is left alone at the end. */
    int inherited;
    unsigned inherited_count;
    /* Called for each request, on the loop; must see to it that http_reply is called exactly once, then or later. */
    void (*handle)(struct http_request *request, void *user);
    void *user;
    size_t (*body_limit)(const char *method, const char *path); /* of one request, at most body_limit_bytes; NULL: that
                                                                   for all */
    size_t body_limit_bytes;
    unsigned idle_timeout_s;   /* wall time */
    unsigned transfer_limit_s; /* wall time */
    unsigned max_connections;
    unsigned max_connections_per_uid;
    unsigned connects_per_s;
    unsigned max_streams;
    unsigned max_streams_per_uid;
};

/* Listens. The socket has mode 0666 where the caller is root (anybody may submit), else 0600. A socket file without a
 * listener is replaced; -EADDRINUSE where there is one. -EPERM: others could read the token, or the caller is not root
 * and others could connect to an inherited socket. -EINVAL, -ENOTSOCK: an inherited descriptor is not a listening
 * socket, or it is TCP and there is no token. */
int http_server_new(const struct http_options *options, struct http_server **server, struct error *err);

/* Stops listening, removes the socket file, answers pending requests with 503, sends all data that goes within half a
 * second, and closes. The memory goes when the loop has run its close callbacks: run it until then. Requests still
 * pending keep the right, and the duty, to one http_reply, which then does nothing but free them. Not to be called from
 * `handle`. */
void http_server_free(struct http_server *server);

/* Listens anew where somebody has removed the file of the server's own socket. 1: it did; 0: the file is there. */
int http_server_heal(struct http_server *server, struct error *err);

/* Where it listens: a path, @NAME of an abstract socket, IP:PORT; by number from 0 on. False: there are no more. */
struct http_place {
    char name[HTTP_PLACE_TEXT];
    bool inherited;
    bool tcp;
    bool exposed; /* other machines can reach it */
};
bool http_server_place(const struct http_server *server, unsigned number, struct http_place *place);

/* The value of `name` in the query: "" where it has none, NULL where it is not there. It goes with the client's
 * connection: work that outlives the server (a thread's) needs a copy. */
const char *http_query(const struct http_request *request, const char *name);

/* Whether the client would rather have (Accept) an answer of that media type than `otherwise`. */
bool http_wants(const struct http_request *request, const char *type, const char *otherwise);

/* False: the user has not taken so much of his answers yet that a large one should not be made. */
bool http_has_room(const struct http_request *request);

/* The client has closed its connection: an answer that costs much need not be made. */
bool http_has_gone(const struct http_request *request);

/* The body has been read: its memory goes now, and not with the answer. It counts as under way until then, and so
 * bounds what the handler made of it and keeps that long. */
void http_drop_body(struct http_request *request);

/* Answers, and with that ends the request's life. `body` is taken over. Harmless where the client has gone. Larger
 * answers, and texts, are packed by gzip for clients that say so (Accept-Encoding). */
void http_reply(struct http_request *request, int status, json_t *body);

/* Answers 204: it was done, and there is nothing to say. */
void http_reply_empty(struct http_request *request);

/* Answers 200 with a text of that media type. `text` is taken over. */
void http_reply_text(struct http_request *request, const char *type, char *text);

/* Answers 503 {"error": ..., "stopping": true}: nothing was done, and another server is likely to follow. */
void http_reply_stopping(struct http_request *request);

#define HTTP_FILE_HEADERS 8

/* A file that stays as it is while the server is there. */
struct http_file {
    const void *bytes;
    size_t length;
    const char *etag; /* in quotes; another for other content */
    struct {
        const char *name, *value;
    } headers[HTTP_FILE_HEADERS]; /* ended by a name NULL where there are fewer */
};

/* Answers 200 with the file, or 304 without it where the client has it (If-None-Match). Clients may keep it, and have
 * to ask each time whether it is still the same. */
void http_reply_file(struct http_request *request, const struct http_file *file);

/* Answers 200 with a text of that media type. http_stream_send adds to it until the stream is closed. NULL: there are
 * too many streams, or the client has gone, and the request has been answered. Ends the request's life in any case.
 *
 * `closed` is called once on the loop when the client has gone, or did not read, or the server is freed. The stream is
 * no longer valid then. Not called after http_stream_close, nor from within the functions below. */
struct http_stream *http_stream_begin(struct http_request *request, const char *type, void (*closed)(void *user),
                                      void *user);

/* Adds to the text, never waiting. The client is cut off instead where data would make more than
 * HTTP_STREAM_LIMIT_BYTES untaken, or stays untaken for the time limit of an answer. `closed` follows. */
void http_stream_send(struct http_stream *stream, const char *text, size_t length);

/* Whether all data has been handed to the socket: a sender that checks this waits for slow readers. */
bool http_stream_taken(const struct http_stream *stream);

/* The data so far is the whole text; the stream is no longer valid. */
void http_stream_close(struct http_stream *stream);

/* Answers {"error": one sentence}. */
void http_reply_error(struct http_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
