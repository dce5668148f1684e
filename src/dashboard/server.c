/* libmicrohttpd gives each browser's connection a thread, which waits for the daemon in its place. While one side does
 * not take data, the other side is not read. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/net/tcp_peer.h"
#include "dashboard/access.h"
#include "dashboard/dashboard.h"
#include "dashboard/request.h"
#include "dashboard/submit.h"
#include "dashboard/upstream.h"

#define BACKLOG          32
#define BLOCK_BYTES      (64 << 10)
#define HEAD_LIMIT_BYTES (64 << 10)
#define HEAD_WAIT_S      15
#define SILENCE_S        120
#define SUBMIT_TARGET    DASHBOARD_LOCAL_PREFIX "submit"

struct dashboard_server {
    struct MHD_Daemon *mhd;
    const struct dashboard_place *place;
    struct sockaddr_in address;
    struct dashboard_access access;
    atomic_uint connections;
};

/* A request, from its first line on. */
struct exchange {
    char *target;
    bool begun;
    struct dashboard_request request;
    struct upstream upstream;
    bool submits;       /* a submission of the page's, which this program answers: */
    struct strbuf body; /* as far as it has come */
};

/* ---- Answers ---- */

/* Only the daemon's content is shown or run, no other page can frame it, and neither address nor answer is kept
 * elsewhere. */
static const struct {
    const char *name, *value;
} protections[] = {
    {"Content-Security-Policy",
     "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
    {"Connection", "close"},
};

/* Takes the response over; adds the headers that protect the page where the daemon has not set them. */
static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    enum MHD_Result rc;

    for (size_t i = 0; i < array_size(protections); i++)
        if (!MHD_get_response_header(response, protections[i].name))
            MHD_add_response_header(response, protections[i].name, protections[i].value);
    rc = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return rc;
}

/* The body is taken over. */
static struct MHD_Response *response_of(struct dashboard_answer *own)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(own->length, own->body, MHD_RESPMEM_MUST_FREE);

    if (!response)
        abort();
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, own->type);
    return response;
}

static enum MHD_Result answer_error(struct MHD_Connection *connection, const struct exchange *exchange, unsigned status,
                                    const char *why)
{
    struct dashboard_answer own;
    struct MHD_Response *response;

    dashboard_answer_error(&own, status, exchange->request.fields[FIELD_ACCEPT].value, why);
    response = response_of(&own);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
    return send_response(connection, status, response);
}

/* Lets the browser in. Where the address was followed from another site's page, a redirection would still count as that
 * site's, and the cookie would not be sent. Then a page of our own goes on to the dashboard. */
static enum MHD_Result answer_token(struct MHD_Connection *connection, const struct exchange *exchange,
                                    const struct dashboard_access *access, const char *to, bool with_cookie)
{
    char *onward = xasprintf("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                             "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n<title>carma</title>\n"
                             "<p><a href=\"%s\">To the dashboard</a></p>\n</html>\n",
                             to, to);
    const char *site = exchange->request.fields[FIELD_FETCH_SITE].value;
    bool unmanaged = site && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
    struct dashboard_answer own = {.type = "text/html; charset=utf-8", .body = onward, .length = strlen(onward)};
    struct MHD_Response *response = response_of(&own);
    CLEANUP(free_ptr)
    char *cookie = xasprintf("carma-%u=%s; Path=/; HttpOnly; SameSite=Strict", access->port, access->cookie.text);

    if (!unmanaged)
        MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, to);
    if (with_cookie)
        MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    return send_response(connection, unmanaged ? MHD_HTTP_OK : MHD_HTTP_SEE_OTHER, response);
}

static enum MHD_Result answer_local(struct MHD_Connection *connection, struct exchange *exchange,
                                    const struct dashboard_place *place)
{
    struct dashboard_answer own;

    if (strcmp(exchange->request.method, "POST") == 0 && strcmp(exchange->target, SUBMIT_TARGET) == 0) {
        const char *length = exchange->request.fields[FIELD_LENGTH].value;

        if (length && strtoull(length, NULL, 10) > SUBMIT_BODY_LIMIT_BYTES)
            return answer_error(connection, exchange, MHD_HTTP_CONTENT_TOO_LARGE,
                                "the submission is too large: at most 2 MiB are taken; a script has 1 MiB");
        exchange->submits = true;
        return MHD_YES;
    }
    if (strcmp(exchange->request.method, "GET") != 0)
        return answer_error(connection, exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                            "this address can only be read: use GET");
    dashboard_local_answer(place, exchange->target, &own);
    return send_response(connection, own.status, response_of(&own));
}

/* A block of a submission, or its end. */
static enum MHD_Result take_submission(struct MHD_Connection *connection, struct exchange *exchange,
                                       const struct dashboard_place *place, const char *block, size_t *size)
{
    struct dashboard_answer own;

    if (*size) {
        strbuf_append(&exchange->body, block, *size);
        *size = 0;
        return MHD_YES;
    }
    dashboard_submit(place, exchange->body.text, exchange->body.length, &own);
    return send_response(connection, own.status, response_of(&own));
}

/* ---- The daemon's side ---- */

/* Errors between us and the daemon. To a browser that has gone nothing is said. */
static enum MHD_Result answer_failure(struct MHD_Connection *connection, const struct exchange *exchange, int rc,
                                      const struct error *err)
{
    if (rc == -EPIPE)
        return MHD_NO;
    return answer_error(connection, exchange, rc == -ETIMEDOUT ? MHD_HTTP_GATEWAY_TIMEOUT : MHD_HTTP_BAD_GATEWAY,
                        err->text);
}

static enum MHD_Result ask_daemon(struct dashboard_server *server, struct MHD_Connection *connection,
                                  struct exchange *exchange)
{
    const struct dashboard_place *place = server->place;
    CLEANUP(strbuf_release) struct strbuf head = {0};
    struct error err;
    int rc = upstream_connect(&exchange->upstream, place->name, &err);

    if (rc) {
        CLEANUP(free_ptr)
        char *why = xasprintf("%s: the daemon cannot be reached (%s). It may be starting again: try again in "
                              "a moment, or start it with 'carmad'",
                              place->name, strerror(-rc));
        return answer_error(connection, exchange, MHD_HTTP_BAD_GATEWAY, why);
    }
    dashboard_request_write(&exchange->request, place->tcp ? place->tcp : "carma",
                            place->tcp ? place->token.text : NULL, &head);
    rc = upstream_send(&exchange->upstream, head.text, head.length, &err);
    explicit_bzero(head.text, head.length); /* the token */
    return rc ? answer_failure(connection, exchange, rc, &err) : MHD_YES;
}

static ssize_t read_body(void *closure, uint64_t position, char *bytes, size_t size)
{
    struct exchange *exchange = closure;
    ssize_t count = upstream_read(&exchange->upstream, bytes, size);

    return count > 0 ? count : count == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Whether a line of the answer's head is about the connection, which is another one here. */
static bool is_of_connection(const char *name)
{
    static const char *const names[] = {MHD_HTTP_HEADER_CONNECTION, MHD_HTTP_HEADER_KEEP_ALIVE,
                                        MHD_HTTP_HEADER_CONTENT_LENGTH, MHD_HTTP_HEADER_TRANSFER_ENCODING};

    for (size_t i = 0; i < array_size(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static enum MHD_Result pass_on(struct MHD_Connection *connection, struct exchange *exchange)
{
    struct http1_reply *reply = &exchange->upstream.reply;
    struct MHD_Response *response;
    struct error err;
    char *line, *rest;
    int rc = upstream_answer(&exchange->upstream, &err);

    if (rc)
        return answer_failure(connection, exchange, rc, &err);
    response = MHD_create_response_from_callback(reply->has_length && !reply->chunked ? reply->left + reply->body.length
                                                                                      : MHD_SIZE_UNKNOWN,
                                                 BLOCK_BYTES, read_body, exchange, NULL);
    if (!response)
        abort();
    /* Without chunks: events are then in the browser as they were sent. */
    MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    for (rest = reply->head.text; (line = strsep(&rest, "\n")) && *line;) {
        char *value = strchr(line, ':');

        *value++ = '\0';
        if (!is_of_connection(line))
            MHD_add_response_header(response, line, value + strspn(value, " \t"));
    }
    return send_response(connection, (unsigned)reply->status, response);
}

/* ---- The browser's side ---- */

static enum MHD_Result begin(struct dashboard_server *server, struct MHD_Connection *connection,
                             struct exchange *exchange, const char *method, const char *version)
{
    const char *why;
    unsigned status = dashboard_request_read(&exchange->request, connection, method, exchange->target, version, &why);
    enum dashboard_verdict verdict;

    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, SILENCE_S);
    upstream_init(&exchange->upstream,
                  MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                  strcmp(method, "HEAD") == 0);
    if (status)
        return answer_error(connection, exchange, status, why);
    if (server->connections > DASHBOARD_CONNECTIONS)
        return answer_error(connection, exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "too many connections are open: close some of the dashboard's pages");
    verdict = dashboard_access_judge(&server->access, &exchange->request, &status, &why);
    if (verdict == DASHBOARD_REFUSED)
        return answer_error(connection, exchange, status, why);
    if (verdict != DASHBOARD_GRANTED)
        return answer_token(connection, exchange, &server->access, server->place->cluster.wanted ? "/#/cluster" : "/",
                            verdict == DASHBOARD_ENTER);
    if (strncmp(exchange->target, DASHBOARD_LOCAL_PREFIX, strlen(DASHBOARD_LOCAL_PREFIX)) == 0)
        return answer_local(connection, exchange, server->place);
    return ask_daemon(server, connection, exchange);
}

static enum MHD_Result on_request(void *closure, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **context)
{
    struct exchange *exchange = *context;
    struct dashboard_server *server = closure;
    struct error err;
    int rc;

    if (!exchange->begun) {
        exchange->begun = true;
        return begin(server, connection, exchange, method, version);
    }
    if (exchange->submits)
        return take_submission(connection, exchange, server->place, upload, upload_size);
    if (!*upload_size)
        return pass_on(connection, exchange);
    rc = upstream_send(&exchange->upstream, upload, *upload_size, &err);
    *upload_size = 0;
    return rc ? MHD_NO : MHD_YES;
}

static void *on_target(void *closure, const char *target, struct MHD_Connection *connection)
{
    struct exchange *exchange = xcalloc(1, sizeof *exchange);

    exchange->target = xstrdup(target);
    exchange->upstream.fd = -1;
    return exchange;
}

static void on_completed(void *closure, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *context;

    if (!exchange)
        return;
    upstream_release(&exchange->upstream);
    strbuf_release(&exchange->body);
    free(exchange->target);
    free(exchange);
    *context = NULL;
}

static void on_connection(void *closure, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct dashboard_server *server = closure;

    server->connections += code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1u;
}

/* Whether the connected user is this one, or root. */
static enum MHD_Result is_own_peer(void *closure, const struct sockaddr *address, socklen_t length)
{
    const struct dashboard_server *server = closure;
    struct sockaddr_storage peer = {0}, own = {0};
    uid_t uid;

    memcpy(&peer, address, length);
    memcpy(&own, &server->address, sizeof server->address);
    return tcp_peer_owner(&peer, &own, &uid) == 0 && (uid == getuid() || uid == 0) ? MHD_YES : MHD_NO;
}

/* ---- From begin to end ---- */

static int start_listening(struct dashboard_server *server, unsigned port, struct error *err)
{
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t length = sizeof server->address;
    struct sockaddr *address = (struct sockaddr *)&server->address;
    int on = 1, rc;

    server->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || bind(fd, address, length) < 0 ||
        listen(fd, BACKLOG) < 0 || getsockname(fd, address, &length) < 0)
        return error_set(err, errno, "cannot listen on 127.0.0.1:%u: %s%s", port, strerror(errno),
                         errno == EADDRINUSE ? ": name another --port, or none" : "");
    rc = dashboard_access_init(&server->access, ntohs(server->address.sin_port), err);
    if (rc)
        return rc;
    server->mhd = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_SUPPRESS_DATE_NO_CLOCK,
        0, is_own_peer, server, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
        DASHBOARD_CONNECTIONS + BACKLOG, /* those beyond are told so */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_LIMIT_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, HEAD_WAIT_S,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!server->mhd)
        return error_set(err, ENOMEM, "127.0.0.1:%u: the HTTP server cannot be started", server->access.port);
    fd = -1; /* libmicrohttpd's */
    return 0;
}

int dashboard_server_new(const struct dashboard_place *place, unsigned port, struct dashboard_server **made,
                         char **address, struct error *err)
{
    struct dashboard_server *server = xcalloc(1, sizeof *server);
    int rc;

    server->place = place;
    rc = start_listening(server, port, err);
    if (rc) {
        dashboard_server_free(server);
        return rc;
    }
    *address = xasprintf("http://127.0.0.1:%u/?token=%s", server->access.port, server->access.token.text);
    *made = server;
    return 0;
}

unsigned dashboard_server_port(const struct dashboard_server *server)
{
    return server->access.port;
}

void dashboard_server_free(struct dashboard_server *server)
{
    if (server->mhd)
        MHD_stop_daemon(server->mhd);
    explicit_bzero(&server->access, sizeof server->access);
    free(server);
}
