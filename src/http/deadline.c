#include <sys/socket.h>
#include <utlist.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "http/http_internal.h"

/* All connections get the same time, so the one that expires last stands last. */
void http_expect(struct connection *connection)
{
    struct http_server *server = connection->server;
    int64_t limit_ns = server->options.transfer_limit_s * NS_PER_SEC;

    http_expect_nothing(connection);
    connection->deadline_ns = nodetime_monotonic_wall_ns() + limit_ns;
    DL_APPEND(server->timed, connection);
    if (server->timed == connection && !server->closing)
        uv_timer_start(&server->deadline_timer, http_on_deadline, (uint64_t)(limit_ns / NS_PER_MS), 0);
}

void http_expect_nothing(struct connection *connection)
{
    if (!connection->deadline_ns)
        return;
    connection->deadline_ns = 0;
    DL_DELETE(connection->server->timed, connection);
}

void http_cut(struct connection *connection)
{
    http_expect_nothing(connection);
    shutdown(connection->fd, SHUT_RDWR);
}

/* Started for one that was first then: it may have done its part meanwhile. */
void http_on_deadline(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    int64_t now_ns = nodetime_monotonic_wall_ns();

    while (server->timed && server->timed->deadline_ns <= now_ns)
        http_cut(server->timed);
    if (server->timed)
        uv_timer_start(timer, http_on_deadline,
                       (uint64_t)((server->timed->deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
    http_wake(server);
}
