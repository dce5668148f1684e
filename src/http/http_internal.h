/* Shared by the files of this module. */
#ifndef CARMA_HTTP_HTTP_INTERNAL_H
#define CARMA_HTTP_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "base/trust/token.h"
#include "http/http.h"

/* The clients of one share: a uid on the Unix socket, or all clients over TCP. Their user is not known before the token
 * is read. There while it holds anything. */
struct peer {
    bool tcp;
    uid_t uid;
    unsigned connections;
    unsigned streams;
    size_t body_bytes;        /* announced by requests under way */
    size_t untaken_bytes;     /* of answers that the clients have not taken to their end */
    struct exchange *waiting; /* complete requests that the handler has not been given yet */
    struct peer *next, *prev;
};

/* One client connection. */
struct connection {
    struct http_server *server;
    struct peer *peer;
    pid_t pid;
    int fd;              /* libmicrohttpd's */
    size_t uri_length;   /* of the request under way, as it was sent */
    int64_t deadline_ns; /* monotonic wall time by which the client is to have done its part; 0: it is our turn */
    struct connection *next, *prev; /* among those with a deadline */
};

/* A request and its answer. Ends when libmicrohttpd has done with it and the handler has replied. */
struct exchange {
    struct http_request request;
    struct http_server *server; /* NULL once finished */
    struct connection *connection;
    struct peer *peer;
    struct MHD_Connection *mhd_connection;
    char *method;
    char *path;
    struct strbuf body;
    size_t announced_bytes;
    size_t answer_bytes; /* counted as untaken */
    struct MHD_Response *response;
    struct http_stream *stream; /* where the answer is one */
    unsigned status;
    bool complete;                          /* all of the request is there */
    bool by_type;                           /* Accept has chosen the answer */
    bool waiting;                           /* for its peer's turn */
    bool replied;                           /* the handler has answered, or never will be asked to */
    bool suspended;                         /* libmicrohttpd waits for us */
    bool finished;                          /* libmicrohttpd has done with it */
    struct exchange *next, *prev;           /* among the server's complete ones */
    struct exchange *wait_next, *wait_prev; /* in its peer's queue */
};

/* The rate at which the clients of one share open connections: at `due_ns` (monotonic wall time) the next would come if
 * they were evenly spaced. */
struct caller {
    bool tcp;
    uid_t uid;
    int64_t due_ns;
    unsigned parked;
};

#define HTTP_CALLERS 64 /* that are told apart: of more, the one that has called least is forgotten */

/* A connection that is accepted, and not taken up before others. */
struct parked {
    int fd;
    struct sockaddr_storage address;
    socklen_t address_size;
    struct caller *caller;
    struct parked *next, *prev;
};

#define HTTP_LISTENERS (HTTP_MAX_INHERITED + 2) /* and one of our own of each kind */

struct listener {
    struct http_server *server;
    int fd;
    bool tcp;
    bool inherited;
    uv_poll_t poll;
};

struct http_server {
    struct http_options options;
    char *socket_path;
    struct stat socket; /* the file that we made; zero: none */
    struct token token; /* with TCP */
    struct listener listeners[HTTP_LISTENERS];
    unsigned listener_count;
    struct MHD_Daemon *mhd;
    uv_poll_t mhd_poll;
    uv_timer_t mhd_timer;                  /* libmicrohttpd's next time-out */
    uv_idle_t mhd_soon;                    /* while it has work left, or was woken */
    uv_timer_t accept_timer;               /* runs while no descriptors are left to accept with */
    uv_timer_t deadline_timer;             /* of the first of `timed` */
    uv_timer_t held_timer;                 /* until descriptors.c has a child for what it holds */
    uv_handle_t *open[7 + HTTP_LISTENERS]; /* connections given to the loop, to be closed */
    unsigned open_count;
    bool woken; /* since libmicrohttpd last ran */
    bool closing;
    unsigned connections;
    unsigned streams;
    size_t body_bytes;
    uv_timer_t parked_timer; /* runs while some are parked */
    struct parked *parked;   /* in the order in which they came */
    unsigned parked_count;
    struct caller callers[HTTP_CALLERS];
    struct peer *peers;         /* the next in turn stands first */
    struct connection *timed;   /* by deadline */
    struct exchange *exchanges; /* complete and not finished */
    struct holder *holders;     /* descriptors.c */
    int *held;                  /* owned; connections that the next of these is to close */
    size_t held_count, held_capacity;
};

/* listen.c: all the listening sockets, non-blocking; and their end. */
int http_listen(struct http_server *server, struct error *err);
void http_unlisten(struct http_server *server);

/* descriptors.c: closes a connection, or a listening socket with those who wait there, and waits for nothing: not for
 * the end of descriptors that clients sent. For a connection that libmicrohttpd closes, what goes before. */
void http_see_all(int fd); /* of an accepted one */
void http_close(struct http_server *server, int fd);
void http_before_close(struct http_server *server, int fd);
void http_close_listener(struct http_server *server, struct listener *listener);
void http_on_held(uv_timer_t *timer);
void http_let_go(struct http_server *server); /* at its end */

/* accept.c: clients are waited for on all of them. */
void http_listen_on(struct http_server *server);

/* accept.c: admission, and each client's limits. */
int http_start_accepting(struct http_server *server, struct error *err);
void http_on_parked(uv_timer_t *timer);
void http_close_parked(struct http_server *server);
void http_on_connection(void *server, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode code);

/* deadline.c: a client that has to send a request or take an answer has a limited time for all of it, however lively it
 * is. */
void http_expect(struct connection *connection); /* from now on */
void http_expect_nothing(struct connection *connection);
void http_cut(struct connection *connection); /* libmicrohttpd will see it closed */
void http_on_deadline(uv_timer_t *timer);

/* head.c: requests that libmicrohttpd passes and this server refuses. 0: accepted; else the status to refuse with, and
 * the reason (static). */
unsigned http_refuse_head(struct connection *connection, struct MHD_Connection *mhd_connection, const char *path,
                          const char *method, const char *version, const char **why);
void *http_on_uri(void *server, const char *uri, struct MHD_Connection *connection); /* before it is decoded */
size_t http_unescape(void *server, struct MHD_Connection *connection, char *text);

/* server.c: libmicrohttpd has something to do that no descriptor shows. */
void http_wake(struct http_server *server);

/* exchange.c: libmicrohttpd's callbacks, `server` being their closure. */
enum MHD_Result http_on_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **context);
void http_on_completed(void *server, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code);

/* Hands waiting requests to the handler, one of each peer in turn. False: some are left, and the loop's other guests
 * have waited long enough. */
bool http_serve(struct http_server *server);
void http_answer_pending(struct http_server *server); /* with 503; streams end */

struct exchange *http_exchange_of(const struct http_request *request);
struct MHD_Response *http_error_response(const char *text);
void http_answer(struct exchange *exchange, unsigned status, struct MHD_Response *response);
void http_resume(struct exchange *exchange); /* libmicrohttpd goes on with it, where it waited */
void http_reply_with(struct http_request *request, unsigned status, struct MHD_Response *response);

/* gzip.c: an answer, which is taken over. NULL: no memory, and it is freed. */
#define HTTP_PACKER_BYTES (72 << 10) /* beside the text */
struct MHD_Response *http_packed_response(char *text);

/* How much a client wants `name`, by a header such as Accept-Encoding (NULL: it has none): in thousandths, its "q"; -1:
 * it does not say. */
int http_preference(const char *header, const char *name);

/* stream.c */
void http_stream_finish(struct http_stream *stream); /* nothing follows the sent data */
void http_stream_over(struct http_stream *stream);   /* libmicrohttpd has done with it: tells the sender */
void http_stream_free(struct http_stream *stream);

#endif
