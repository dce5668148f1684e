/* What the files of this room share. */
#ifndef CARMA_HTTP_HTTP_INTERNAL_H
#define CARMA_HTTP_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "http/http.h"

/* What one uid holds; there while it holds anything. */
struct peer {
    uid_t uid;
    unsigned connections;
    size_t body_bytes; /* announced by requests under way */
    struct peer *next, *prev;
};

/* One client connection. */
struct connection {
    struct http_server *server;
    struct peer *peer;
    gid_t gid;
    pid_t pid;
};

/* A request and its answer. Ends when libmicrohttpd has done with it and the handler has replied. */
struct exchange {
    struct http_request request;
    struct http_server *server; /* NULL once finished */
    struct peer *peer;
    struct MHD_Connection *connection;
    char *method;
    char *path;
    struct strbuf body;
    size_t announced_bytes;
    struct MHD_Response *response;
    unsigned status;
    bool handed;    /* the handler has the request */
    bool replied;   /* the handler has answered, or never will be asked to */
    bool suspended; /* libmicrohttpd waits for us */
    bool finished;  /* libmicrohttpd has done with it */
    struct exchange *next, *prev;
};

struct http_server {
    struct http_options options;
    char *socket_path;
    struct stat socket; /* the file that we made */
    int listen_fd;
    struct MHD_Daemon *mhd;
    uv_poll_t listen_poll;
    uv_poll_t mhd_poll;
    uv_timer_t mhd_timer;    /* libmicrohttpd's next time-out */
    uv_timer_t accept_timer; /* runs while there are no descriptors to accept with */
    unsigned open_handles;
    bool closing;
    unsigned connections;
    struct peer *peers;
    struct exchange *exchanges; /* handed over and not finished */
};

/* socket.c: a listening socket, non-blocking; *made is the file's identity. */
int http_listen(const char *path, int *fd, struct stat *made, struct error *err);
void http_unlisten(const char *path, const struct stat *made);

/* server.c: libmicrohttpd has something to do that no descriptor shows. */
void http_wake(struct http_server *server);

/* exchange.c: libmicrohttpd's callbacks, `server` being their closure. */
enum MHD_Result http_on_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **context);
void http_on_completed(void *server, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code);
void http_answer_pending(struct http_server *server); /* with 503 */

#endif
