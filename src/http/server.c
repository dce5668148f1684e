/* libmicrohttpd on the caller's loop. */
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

#define RUNS_PER_WAKE 8
#define DRAIN_NS      (500 * NS_PER_MS)
#define DRAIN_STEP_MS 10

static void run_mhd(struct http_server *server);

static void on_mhd_timer(uv_timer_t *timer)
{
    run_mhd(timer->data);
}

static void on_mhd_soon(uv_idle_t *idle)
{
    uv_idle_stop(idle);
    run_mhd(idle->data);
}

/* In the loop's next round. A timer of 0 ms that is set again as it runs out leaves the others no turn: libuv goes on
 * with timers as long as one is due. */
static void run_soon(struct http_server *server)
{
    uv_idle_start(&server->mhd_soon, on_mhd_soon);
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
        bool served;

        server->woken = false;
        MHD_run(server->mhd);
        served = http_serve(server);
        if (MHD_get_timeout(server->mhd, &timeout_ms) != MHD_YES)
            timeout_ms = UINT64_MAX;
        if (!served || server->woken) /* time that MHD_get_timeout does not count */
            timeout_ms = 0;
        if (!served || timeout_ms)
            break;
    }
    if (timeout_ms == 0)
        run_soon(server);
    if (timeout_ms == 0 || timeout_ms == UINT64_MAX)
        uv_timer_stop(&server->mhd_timer);
    else
        uv_timer_start(&server->mhd_timer, on_mhd_timer, timeout_ms, 0);
}

void http_wake(struct http_server *server)
{
    server->woken = true;
    if (!server->closing) /* then http_server_free runs it */
        run_soon(server);
}

static int start_mhd(struct http_server *server, struct error *err)
{
    const struct http_options *options = &server->options;

    server->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, http_on_request, server,
        MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, http_on_connection,
        server, MHD_OPTION_URI_LOG_CALLBACK, http_on_uri, server, MHD_OPTION_UNESCAPE_CALLBACK, http_unescape, server,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER_LIMIT_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        options->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, options->idle_timeout_s, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_END);
    return server->mhd ? 0 : error_set(err, ENOMEM, "%s: the HTTP server cannot be started", server->socket_path);
}

static void add_timer(struct http_server *server, uv_timer_t *timer)
{
    uv_timer_init(server->options.loop, timer);
    timer->data = server;
    server->open[server->open_count++] = (uv_handle_t *)timer;
}

static int join_loop(struct http_server *server, struct error *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    int rc;

    uv_idle_init(server->options.loop, &server->mhd_soon);
    server->mhd_soon.data = server;
    server->open[server->open_count++] = (uv_handle_t *)&server->mhd_soon;
    add_timer(server, &server->mhd_timer);
    add_timer(server, &server->accept_timer);
    add_timer(server, &server->deadline_timer);
    add_timer(server, &server->parked_timer);
    add_timer(server, &server->held_timer);
    rc = uv_poll_init(server->options.loop, &server->mhd_poll, info->epoll_fd);
    if (rc)
        return error_set(err, rc, "%s: cannot join the event loop: %s", server->socket_path, uv_strerror(rc));
    server->mhd_poll.data = server;
    server->open[server->open_count++] = (uv_handle_t *)&server->mhd_poll;
    uv_poll_start(&server->mhd_poll, UV_READABLE, on_mhd_ready);
    return http_start_accepting(server, err);
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
    own->connects_per_s = or_default(options->connects_per_s, HTTP_CONNECTS_PER_S);
    own->max_streams = or_default(options->max_streams, HTTP_MAX_STREAMS);
    own->max_streams_per_uid = or_default(options->max_streams_per_uid, HTTP_MAX_STREAMS_PER_UID);
    own->transfer_limit_s = or_default(options->transfer_limit_s, HTTP_TRANSFER_LIMIT_S);
    rc = http_listen(server, err);
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
    explicit_bzero(&server->token, sizeof server->token);
    free(server->socket_path);
    free(server);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    if (--server->open_count == 0)
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
    server->closing = true;
    count = server->open_count;
    for (unsigned i = 0; i < count; i++) {
        server->open[i]->data = server;
        uv_close(server->open[i], on_handle_closed);
    }
    http_unlisten(server);
    http_close_parked(server);
    if (server->mhd) {
        http_answer_pending(server);
        drain(server);
        MHD_stop_daemon(server->mhd);
        server->mhd = NULL;
    }
    http_let_go(server);
    if (!count)
        drop(server);
}
