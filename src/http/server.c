/* Accepting, and libmicrohttpd on the caller's loop. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "http/http_internal.h"

#define ACCEPTS_PER_WAKE 64
#define ACCEPT_PAUSE_MS 100
#define RUNS_PER_WAKE 8
#define DRAIN_NS (500 * NS_PER_MS)
#define DRAIN_STEP_MS 10

static void run_mhd(struct http_server *server);

static void on_mhd_timer(uv_timer_t *timer)
{
    run_mhd(timer->data);
}

static void on_mhd_ready(uv_poll_t *poll, int status, int events)
{
    run_mhd(poll->data);
}

/* A round that leaves work is followed by another at once, but not for ever: the loop has other guests. */
static void run_mhd(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    for (int i = 0; i < RUNS_PER_WAKE; i++) {
        MHD_run(server->mhd);
        if (MHD_get_timeout(server->mhd, &timeout_ms) != MHD_YES) {
            uv_timer_stop(&server->mhd_timer);
            return;
        }
        if (timeout_ms)
            break;
    }
    uv_timer_start(&server->mhd_timer, on_mhd_timer, timeout_ms, 0);
}

void http_wake(struct http_server *server)
{
    if (!server->closing) /* then http_server_free runs it */
        uv_timer_start(&server->mhd_timer, on_mhd_timer, 0, 0);
}

static struct peer *find_peer(struct http_server *server, uid_t uid)
{
    struct peer *peer;

    DL_FOREACH (server->peers, peer)
        if (peer->uid == uid)
            return peer;
    return NULL;
}

/* libmicrohttpd takes up, or has done with, a connection. Peer credentials are those of the time of connect(2), so they
 * can be asked for here again. */
static void on_connection(void *closure, struct MHD_Connection *mhd_connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = closure;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *connection = xcalloc(1, sizeof *connection);
        struct ucred credentials = {.uid = (uid_t)-1, .gid = (gid_t)-1};
        socklen_t size = sizeof credentials;

        getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
        connection->server = server;
        connection->gid = credentials.gid;
        connection->pid = credentials.pid;
        connection->peer = find_peer(server, credentials.uid);
        if (!connection->peer) {
            connection->peer = xcalloc(1, sizeof *connection->peer);
            connection->peer->uid = credentials.uid;
            DL_APPEND(server->peers, connection->peer);
        }
        connection->peer->connections++;
        server->connections++;
        *context = connection;
    } else {
        struct connection *connection = *context;
        struct peer *peer = connection->peer;

        server->connections--;
        if (--peer->connections == 0) {
            DL_DELETE(server->peers, peer);
            free(peer);
        }
        free(connection);
        *context = NULL;
    }
}

/* Says so without waiting: whether the client listens is its affair. */
static void turn_away(int fd, const char *text)
{
    char reply[256];
    int length = snprintf(reply, sizeof reply,
                          "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
                          "Content-Length: %zu\r\n\r\n{\"error\":\"%s\"}",
                          strlen(text) + strlen("{\"error\":\"\"}"), text);

    send(fd, reply, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

static void admit(struct http_server *server, int fd, const struct sockaddr_storage *address, socklen_t address_size)
{
    const struct peer *peer;
    struct ucred credentials;
    socklen_t size = sizeof credentials;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) {
        close(fd);
        return;
    }
    peer = find_peer(server, credentials.uid);
    if (server->connections >= server->options.max_connections) {
        turn_away(fd, "the daemon has too many clients: try again later");
        return;
    }
    if (peer && peer->connections >= server->options.max_connections_per_uid) {
        turn_away(fd, "you have too many connections open: close some");
        return;
    }
    /* Closes the descriptor where it fails. Taken up, and thus counted, in the run that follows. */
    MHD_add_connection(server->mhd, fd, (const struct sockaddr *)address, address_size);
    run_mhd(server);
}

static void on_connect(uv_poll_t *poll, int status, int events);

static void on_accept_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;

    uv_poll_start(&server->listen_poll, UV_READABLE, on_connect);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
    struct http_server *server = poll->data;

    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof address;
        int fd = accept4(server->listen_fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            admit(server, fd, &address, size);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* The socket stays readable: without a pause this would spin. */
            uv_poll_stop(&server->listen_poll);
            uv_timer_start(&server->accept_timer, on_accept_timer, ACCEPT_PAUSE_MS, 0);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static int start_mhd(struct http_server *server, struct error *err)
{
    const struct http_options *options = &server->options;

    server->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, http_on_request, server,
        MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER_LIMIT_BYTES,
        MHD_OPTION_CONNECTION_LIMIT, options->max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, options->idle_timeout_s,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    return server->mhd ? 0 : error_set(err, ENOMEM, "%s: the HTTP server cannot be started", server->socket_path);
}

static int join_loop(struct http_server *server, struct error *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    uv_loop_t *loop = server->options.loop;
    int rc;

    server->listen_poll.data = server->mhd_poll.data = server;
    server->mhd_timer.data = server->accept_timer.data = server;
    uv_timer_init(loop, &server->mhd_timer);
    uv_timer_init(loop, &server->accept_timer);
    server->open_handles = 2;
    rc = uv_poll_init(loop, &server->listen_poll, server->listen_fd);
    if (!rc) {
        server->open_handles++;
        rc = uv_poll_init(loop, &server->mhd_poll, info->epoll_fd);
    }
    if (!rc) {
        server->open_handles++;
        rc = uv_poll_start(&server->listen_poll, UV_READABLE, on_connect);
    }
    if (!rc)
        rc = uv_poll_start(&server->mhd_poll, UV_READABLE, on_mhd_ready);
    return rc ? error_set(err, rc, "%s: cannot join the event loop: %s", server->socket_path, uv_strerror(rc)) : 0;
}

static unsigned or_default(unsigned value, unsigned otherwise)
{
    return value ? value : otherwise;
}

int http_server_new(const struct http_options *options, struct http_server **made, struct error *err)
{
    struct http_server *server = xcalloc(1, sizeof *server);
    struct http_options *own = &server->options;
    int rc;

    *own = *options;
    own->socket_path = server->socket_path = xstrdup(options->socket_path);
    own->body_limit_bytes = options->body_limit_bytes ? options->body_limit_bytes : HTTP_BODY_LIMIT_BYTES;
    own->idle_timeout_s = or_default(options->idle_timeout_s, HTTP_IDLE_TIMEOUT_S);
    own->max_connections = or_default(options->max_connections, HTTP_MAX_CONNECTIONS);
    own->max_connections_per_uid = or_default(options->max_connections_per_uid, HTTP_MAX_CONNECTIONS_PER_UID);
    server->listen_fd = -1;
    rc = http_listen(server->socket_path, &server->listen_fd, &server->socket, err);
    if (!rc)
        rc = start_mhd(server, err);
    if (!rc)
        rc = join_loop(server, err);
    if (rc)
        http_server_free(server);
    else
        *made = server;
    return rc;
}

static void drop(struct http_server *server)
{
    free(server->socket_path);
    free(server);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    if (--server->open_handles == 0)
        drop(server);
}

/* Waits, for a short while at most: the one place that does, when nothing else is left to do. */
static void drain(struct http_server *server)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd ready = {.fd = info->epoll_fd, .events = POLLIN};
    int64_t end_ns = nodetime_monotonic_wall_ns() + DRAIN_NS;

    for (;;) {
        for (int i = 0; i < RUNS_PER_WAKE; i++)
            MHD_run(server->mhd);
        if (!server->exchanges || nodetime_monotonic_wall_ns() >= end_ns)
            return;
        poll(&ready, 1, DRAIN_STEP_MS);
    }
}

void http_server_free(struct http_server *server)
{
    unsigned count;

    if (!server)
        return;
    uv_handle_t *handles[] = {(uv_handle_t *)&server->mhd_timer, (uv_handle_t *)&server->accept_timer,
                              (uv_handle_t *)&server->listen_poll, (uv_handle_t *)&server->mhd_poll};
    count = server->open_handles;
    server->closing = true;
    if (server->listen_fd >= 0)
        http_unlisten(server->socket_path, &server->socket);
    for (unsigned i = 0; i < count; i++)
        uv_close(handles[i], on_handle_closed);
    close_fd(&server->listen_fd);
    if (server->mhd) {
        http_answer_pending(server);
        drain(server);
        MHD_stop_daemon(server->mhd);
        server->mhd = NULL;
    }
    if (!count)
        drop(server);
}
