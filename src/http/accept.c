#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "http/http_internal.h"

#define ACCEPTS_PER_WAKE 256
#define ACCEPT_PAUSE_MS  100

/* The peer's user. Peer credentials are those of the time of connect(2), so they can be asked for at any time. */
static int identify(const struct http_server *server, int fd, bool tcp, struct peer *who, pid_t *pid)
{
    struct ucred credentials = {.uid = (uid_t)-1};
    socklen_t size = sizeof credentials;

    if (!tcp && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
        return -errno;
    who->tcp = tcp;
    who->uid = tcp ? server->token.owner : credentials.uid;
    *pid = tcp ? 0 : credentials.pid;
    return 0;
}

static struct peer *find_peer(struct http_server *server, const struct peer *who)
{
    struct peer *peer;

    DL_FOREACH (server->peers, peer)
        if (peer->tcp == who->tcp && (peer->tcp || peer->uid == who->uid))
            return peer;
    return NULL;
}

static bool is_tcp(int fd)
{
    int domain = AF_UNIX;
    socklen_t size = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX;
}

/* libmicrohttpd takes up, or has done with, a connection. */
void http_on_connection(void *closure, struct MHD_Connection *mhd_connection, void **context,
                        enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = closure;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *connection = xcalloc(1, sizeof *connection);
        struct peer who = {.uid = (uid_t)-1};

        connection->server = server;
        connection->fd = MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        identify(server, connection->fd, is_tcp(connection->fd), &who, &connection->pid); /* it has worked for `take` */
        connection->peer = find_peer(server, &who);
        if (!connection->peer) {
            connection->peer = xmalloc(sizeof *connection->peer);
            *connection->peer = who;
            DL_APPEND(server->peers, connection->peer);
        }
        connection->peer->connections++;
        server->connections++;
        http_expect(connection);
        *context = connection;
    } else {
        struct connection *connection = *context;
        struct peer *peer = connection->peer;

        http_expect_nothing(connection);
        http_before_close(server, connection->fd);
        server->connections--;
        if (--peer->connections == 0) {
            DL_DELETE(server->peers, peer);
            free(peer);
        }
        free(connection);
        *context = NULL;
    }
}

/* Says so without waiting: whether the client listens is its affair. It may come again: nothing of it was looked at. */
static void turn_away(struct http_server *server, int fd, const char *text)
{
    char reply[256];
    int length = snprintf(reply, sizeof reply,
                          "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
                          "Content-Length: %zu\r\n\r\n{\"error\":\"%s\",\"busy\":true}",
                          strlen(text) + strlen("{\"error\":\"\",\"busy\":true}"), text);

    send(fd, reply, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    http_close(server, fd);
}

/* NULL: too many peers connect too fast. */
static struct caller *find_caller(struct http_server *server, const struct peer *who)
{
    struct caller *idle = NULL;

    for (struct caller *caller = server->callers; caller < server->callers + HTTP_CALLERS; caller++) {
        if (caller->due_ns && caller->tcp == who->tcp && caller->uid == who->uid)
            return caller;
        if (!caller->parked && (!idle || caller->due_ns < idle->due_ns))
            idle = caller;
    }
    if (idle)
        *idle = (struct caller){.tcp = who->tcp, .uid = who->uid};
    return idle;
}

static bool comes_too_fast(const struct http_server *server, struct caller *caller)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (caller->due_ns < now_ns)
        caller->due_ns = now_ns;
    if (caller->due_ns - now_ns >= NS_PER_SEC)
        return true;
    caller->due_ns += NS_PER_SEC / server->options.connects_per_s;
    return false;
}

/* Where all places are taken, the user with most connections loses the one that has been idle longest. This is not done
 * where the newcomer would then have as many. So several users together cannot keep another out. */
static void make_room(struct http_server *server, const struct peer *newcomer)
{
    struct peer *peer, *largest = NULL;
    struct connection *connection;

    DL_FOREACH (server->peers, peer)
        if (!largest || peer->connections > largest->connections)
            largest = peer;
    if (!largest || largest->connections <= (newcomer ? newcomer->connections : 0) + 1)
        return;
    DL_FOREACH (server->timed, connection)
        if (connection->peer == largest) {
            http_cut(connection);
            MHD_run(server->mhd); /* sees that it is closed */
            return;
        }
}

/* Takes the connection up. */
static void admit(struct http_server *server, int fd, const struct peer *who, const struct sockaddr_storage *address,
                  socklen_t address_size)
{
    const struct peer *peer = find_peer(server, who);

    if (peer && peer->connections >= server->options.max_connections_per_uid) {
        turn_away(server, fd, "you have too many connections open: close some");
        return;
    }
    if (server->connections >= server->options.max_connections)
        make_room(server, peer);
    if (server->connections >= server->options.max_connections) {
        turn_away(server, fd, "the daemon has too many clients: try again later");
        return;
    }
    /* Closes the descriptor where it fails. Taken up, and thus counted, in the run that follows. */
    MHD_add_connection(server->mhd, fd, (const struct sockaddr *)address, address_size);
    MHD_run(server->mhd);
    http_wake(server);
}

/* ---- Users that connect too fast ---- */

/* Further connections of a user with many parked ones cost next to nothing: they are told to come again. */
static void park(struct http_server *server, int fd, struct caller *caller, const struct sockaddr_storage *address,
                 socklen_t address_size)
{
    struct parked *parked;

    if (caller->parked >= HTTP_MAX_PARKED_PER_UID || server->parked_count >= HTTP_MAX_PARKED) {
        turn_away(server, fd, "you connect too often");
        return;
    }
    parked = xmalloc(sizeof *parked);
    *parked = (struct parked){.fd = fd, .address = *address, .address_size = address_size, .caller = caller};
    DL_APPEND(server->parked, parked);
    caller->parked++;
    server->parked_count++;
}

static void unpark(struct http_server *server, struct parked *parked)
{
    DL_DELETE(server->parked, parked);
    parked->caller->parked--;
    server->parked_count--;
    free(parked);
}

static bool has_gone(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* One in each round of the loop: all others come first. */
void http_on_parked(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    struct parked first = *server->parked;
    const struct peer who = {.tcp = first.caller->tcp, .uid = first.caller->uid};

    unpark(server, server->parked);
    if (has_gone(first.fd))
        http_close(server, first.fd);
    else
        admit(server, first.fd, &who, &first.address, first.address_size);
    if (server->parked) /* at 0 ms it would be in this round */
        uv_timer_start(timer, http_on_parked, 1, 0);
}

void http_close_parked(struct http_server *server)
{
    while (server->parked) {
        http_close(server, server->parked->fd);
        unpark(server, server->parked);
    }
}

static void take(struct http_server *server, int fd, bool tcp, const struct sockaddr_storage *address,
                 socklen_t address_size)
{
    struct caller *caller;
    struct peer who = {0};
    pid_t pid;

    http_see_all(fd);
    if (identify(server, fd, tcp, &who, &pid) < 0) {
        http_close(server, fd);
        return;
    }
    caller = find_caller(server, &who);
    if (!caller)
        turn_away(server, fd, "the daemon has too many clients: try again later");
    else if (caller->parked || comes_too_fast(server, caller))
        park(server, fd, caller, address, address_size);
    else
        admit(server, fd, &who, address, address_size);
}

/* ---- The listening sockets ---- */

static void on_connect(uv_poll_t *poll, int status, int events);

void http_listen_on(struct http_server *server)
{
    for (unsigned i = 0; i < server->listener_count; i++)
        uv_poll_start(&server->listeners[i].poll, UV_READABLE, on_connect);
}

static void on_accept_timer(uv_timer_t *timer)
{
    http_listen_on(timer->data);
}

/* The sockets stay readable: without a pause this would spin. */
static void pause_accepting(struct http_server *server)
{
    for (unsigned i = 0; i < server->listener_count; i++)
        uv_poll_stop(&server->listeners[i].poll);
    uv_timer_start(&server->accept_timer, on_accept_timer, ACCEPT_PAUSE_MS, 0);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;

    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof address;
        int fd = accept4(listener->fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            take(listener->server, fd, listener->tcp, &address, size);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            pause_accepting(listener->server);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            break;
        }
    }
    if (listener->server->parked)
        uv_timer_start(&listener->server->parked_timer, http_on_parked, 0, 0);
}

int http_start_accepting(struct http_server *server, struct error *err)
{
    for (unsigned i = 0; i < server->listener_count; i++) {
        struct listener *listener = &server->listeners[i];
        int rc = uv_poll_init(server->options.loop, &listener->poll, listener->fd);

        if (rc)
            return error_set(err, rc, "%s: cannot join the event loop: %s", server->socket_path, uv_strerror(rc));
        listener->poll.data = listener;
        server->open[server->open_count++] = (uv_handle_t *)&listener->poll;
    }
    http_listen_on(server);
    return 0;
}
