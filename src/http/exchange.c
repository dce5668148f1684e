/* A request from its first header line to the last byte of its answer. */
#include <assert.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "http/http_internal.h"

/* The time slice in which requests are handled one after the other; then the loop's other work has its turn. */
#define SERVE_NS     (5 * NS_PER_MS)
#define PACKED_LEAST 4096 /* bytes: smaller answers are not worth the packer */

struct exchange *http_exchange_of(const struct http_request *request)
{
    return (struct exchange *)((char *)request - offsetof(struct exchange, request));
}

static void exchange_free(struct exchange *exchange)
{
    if (exchange->response)
        MHD_destroy_response(exchange->response);
    http_stream_free(exchange->stream);
    strbuf_release(&exchange->body);
    free(exchange->method);
    free(exchange->path);
    free(exchange);
}

/* One line, fit for a terminal, that JSON can hold: a client's own words in it may be anything, and show as '?' then.
 */
static json_t *json_text(const char *text)
{
    CLEANUP(free_ptr) char *clean = xstrdup(text);
    json_t *json;

    for (char *at = clean; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    json = json_string(clean);
    for (char *at = clean; *at && !json; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    return json ? json : json_string(clean);
}

/* Takes the text over; NULL gives NULL. */
static struct MHD_Response *text_response(const char *type, char *text, bool packed)
{
    struct MHD_Response *response;

    if (!text)
        return NULL;
    response = packed ? http_packed_response(text)
                      : MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    else if (!packed)
        free(text);
    return response;
}

/* Takes the value over. */
static char *text_of(json_t *body)
{
    char *text = body ? printable_json(json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY)) : NULL;

    json_decref(body);
    return text;
}

static struct MHD_Response *response_of(json_t *body)
{
    return text_response("application/json", text_of(body), false);
}

struct MHD_Response *http_error_response(const char *text)
{
    return response_of(json_pack("{s:o}", "error", json_text(text)));
}

static struct MHD_Response *stopping_response(void)
{
    return response_of(json_pack("{s:s, s:b}", "error", "the daemon is stopping: try again later", "stopping", true));
}

/* Refuses before the body is read; the connection is closed then, since nobody will read it. */
static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response = status == MHD_HTTP_SERVICE_UNAVAILABLE
                                        ? response_of(json_pack("{s:s, s:b}", "error", text, "busy", true))
                                        : http_error_response(text);
    enum MHD_Result rc = MHD_NO;

    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        if (status == MHD_HTTP_UNAUTHORIZED)
            MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
        rc = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
    }
    return rc;
}

/* Small bodies are bounded by the connections alone: no number of large ones keeps them out. */
static size_t counted_of(size_t announced)
{
    return announced > HTTP_SMALL_BODY_BYTES ? announced : 0;
}

/* The status that refuses this many more bytes; 0: they are accepted. */
static unsigned refuse_body(const struct connection *connection, const char *method, const char *path, size_t announced,
                            char why[static 128])
{
    const struct http_server *server = connection->server;
    size_t limit = server->options.body_limit_bytes;
    size_t own_limit = server->options.body_limit ? server->options.body_limit(method, path) : limit, most;

    if (announced > own_limit) {
        snprintf(why, 128, "the request is too large: at most %zu bytes are taken here", own_limit);
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    if (counted_of(announced) == 0)
        return 0;
    if (announced > limit * HTTP_BODIES_PER_UID - connection->peer->body_bytes) {
        snprintf(why, 128, "you have too many large requests under way: wait for their answers");
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    /* The last quarter is for users that have none under way. */
    most = limit * HTTP_BODIES_IN_ALL - (connection->peer->body_bytes ? limit * HTTP_BODIES_IN_ALL / 4 : 0);
    if (server->body_bytes > most || announced > most - server->body_bytes) {
        snprintf(why, 128, "the daemon has too many large requests under way: try again later");
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    return 0;
}

static enum MHD_Result begin(struct http_server *server, struct MHD_Connection *mhd_connection, const char *url,
                             const char *method, const char *version, void **context)
{
    const char *length = MHD_lookup_connection_value(mhd_connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info->socket_context;
    const char *why;
    unsigned status = http_refuse_head(connection, mhd_connection, url, method, version, &why);
    struct exchange *exchange;
    size_t announced;
    char text[128];

    if (status)
        return refuse(mhd_connection, status, why);
    announced = length ? strtoull(length, NULL, 10) : 0; /* digits alone; too many of them give ULLONG_MAX */
    status = refuse_body(connection, method, url, announced, text);
    if (status)
        return refuse(mhd_connection, status, text);
    exchange = xcalloc(1, sizeof *exchange);
    exchange->server = server;
    exchange->connection = connection;
    exchange->peer = connection->peer;
    exchange->mhd_connection = mhd_connection;
    exchange->method = xstrdup(method);
    exchange->path = xstrdup(url);
    exchange->announced_bytes = announced;
    if (announced) /* at once: a buffer that grows takes up to twice as much. What does not come costs no memory */
        exchange->body = (struct strbuf){.text = xmalloc(announced + 1), .capacity = announced + 1};
    exchange->replied = true;
    exchange->peer->body_bytes += counted_of(announced);
    server->body_bytes += counted_of(announced);
    exchange->request = (struct http_request){
        .method = exchange->method,
        .path = exchange->path,
        .uid = connection->peer->uid,
        .pid = connection->pid,
    };
    *context = exchange;
    return MHD_YES;
}

void http_resume(struct exchange *exchange)
{
    if (!exchange->suspended)
        return;
    exchange->suspended = false;
    MHD_resume_connection(exchange->mhd_connection);
    http_wake(exchange->server);
}

void http_answer(struct exchange *exchange, unsigned status, struct MHD_Response *response)
{
    exchange->status = response ? status : MHD_HTTP_INTERNAL_SERVER_ERROR;
    exchange->response = response ? response : http_error_response("the answer could not be written down");
    http_expect(exchange->connection); /* to take it */
    http_resume(exchange);
}

/* The request is complete: it waits for its turn. */
static void enqueue(struct http_server *server, struct exchange *exchange)
{
    exchange->complete = true;
    DL_APPEND(server->exchanges, exchange);
    if (server->closing) {
        http_answer(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, stopping_response());
        return;
    }
    http_expect_nothing(exchange->connection);
    exchange->waiting = true;
    DL_APPEND2(exchange->peer->waiting, exchange, wait_prev, wait_next);
}

static void stop_waiting(struct exchange *exchange)
{
    if (exchange->waiting)
        DL_DELETE2(exchange->peer->waiting, exchange, wait_prev, wait_next);
    exchange->waiting = false;
}

static void hand_over(struct http_server *server, struct exchange *exchange)
{
    stop_waiting(exchange);
    exchange->request.body = exchange->body.text ? exchange->body.text : "";
    exchange->request.body_length = exchange->body.length;
    exchange->replied = false;
    server->options.handle(&exchange->request, server->options.user);
}

bool http_serve(struct http_server *server)
{
    int64_t end_ns = nodetime_monotonic_wall_ns() + SERVE_NS;
    struct peer *peer = server->peers;

    while (peer && !server->closing) {
        if (!peer->waiting || peer->untaken_bytes > HTTP_UNTAKEN_PER_UID) {
            peer = peer->next;
            continue;
        }
        if (nodetime_monotonic_wall_ns() >= end_ns)
            return false;
        DL_DELETE(server->peers, peer);
        DL_APPEND(server->peers, peer);
        hand_over(server, peer->waiting);
        peer = server->peers;
    }
    return true;
}

enum MHD_Result http_on_request(void *closure, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **context)
{
    struct http_server *server = closure;
    struct exchange *exchange = *context;

    if (!exchange)
        return begin(server, connection, url, method, version, context);
    if (*upload_size) {
        /* libmicrohttpd gives at most the announced bytes; this checks it all the same. */
        if (*upload_size > exchange->announced_bytes - exchange->body.length)
            return MHD_NO;
        strbuf_append(&exchange->body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!exchange->complete)
        enqueue(server, exchange);
    if (!exchange->response) {
        exchange->suspended = true;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    return MHD_queue_response(connection, exchange->status, exchange->response);
}

void http_on_completed(void *closure, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code)
{
    struct http_server *server = closure;
    struct exchange *exchange = *context;

    *context = NULL;
    if (!exchange)
        return;
    stop_waiting(exchange);
    exchange->peer->body_bytes -= counted_of(exchange->announced_bytes);
    server->body_bytes -= counted_of(exchange->announced_bytes);
    exchange->peer->untaken_bytes -= exchange->answer_bytes;
    if (exchange->answer_bytes && exchange->peer->waiting)
        http_wake(server);
    if (exchange->complete)
        DL_DELETE(server->exchanges, exchange);
    http_expect(exchange->connection); /* to send the next */
    if (exchange->stream)
        http_stream_over(exchange->stream);
    exchange->server = NULL;
    exchange->connection = NULL;
    exchange->mhd_connection = NULL;
    exchange->finished = true;
    if (exchange->replied)
        exchange_free(exchange);
}

void http_answer_pending(struct http_server *server)
{
    struct exchange *exchange;

    DL_FOREACH (server->exchanges, exchange)
        stop_waiting(exchange);
    DL_FOREACH (server->exchanges, exchange)
        if (exchange->stream)
            http_stream_finish(exchange->stream);
        else if (!exchange->response)
            http_answer(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, stopping_response());
}

const char *http_query(const struct http_request *request, const char *name)
{
    const struct exchange *exchange = http_exchange_of(request);
    const char *value = NULL;

    if (exchange->finished || MHD_lookup_connection_value_n(exchange->mhd_connection, MHD_GET_ARGUMENT_KIND, name,
                                                            strlen(name), &value, NULL) != MHD_YES)
        return NULL;
    return value ? value : "";
}

void http_drop_body(struct http_request *request)
{
    strbuf_release(&http_exchange_of(request)->body);
    request->body = "";
    request->body_length = 0;
}

void http_reply_with(struct http_request *request, unsigned status, struct MHD_Response *response)
{
    struct exchange *exchange = http_exchange_of(request);

    assert(!exchange->replied);
    exchange->replied = true;
    if (!exchange->finished && !exchange->response) {
        http_answer(exchange, status, response);
        return;
    }
    /* The server was freed meanwhile, and has answered in our stead. */
    if (response)
        MHD_destroy_response(response);
    if (exchange->finished)
        exchange_free(exchange);
}

static int wish_of(const struct exchange *exchange, const char *header, const char *name)
{
    return http_preference(MHD_lookup_connection_value(exchange->mhd_connection, MHD_HEADER_KIND, header), name);
}

bool http_wants(const struct http_request *request, const char *type, const char *otherwise)
{
    struct exchange *exchange = http_exchange_of(request);
    int wish = exchange->finished ? -1 : wish_of(exchange, MHD_HTTP_HEADER_ACCEPT, type);

    exchange->by_type = true;
    return wish > 0 && wish >= wish_of(exchange, MHD_HTTP_HEADER_ACCEPT, otherwise);
}

/* The answer counts until it is taken. A cache between is told by which headers it is another (RFC 9110, Vary). */
static void reply_with_text(struct http_request *request, unsigned status, const char *type, char *text)
{
    struct exchange *exchange = http_exchange_of(request);
    struct MHD_Response *response;
    bool packed = false;

    if (text && !exchange->finished && !exchange->response) {
        size_t length = strlen(text);
        packed = length >= PACKED_LEAST && wish_of(exchange, MHD_HTTP_HEADER_ACCEPT_ENCODING, "gzip") > 0;
        exchange->answer_bytes = length + (packed ? HTTP_PACKER_BYTES : 0);
        exchange->peer->untaken_bytes += exchange->answer_bytes;
    }
    response = text_response(type, text, packed);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY,
                                exchange->by_type ? "Accept, Accept-Encoding" : "Accept-Encoding");
    http_reply_with(request, status, response);
}

bool http_has_room(const struct http_request *request)
{
    const struct exchange *exchange = http_exchange_of(request);

    return exchange->finished || exchange->peer->untaken_bytes <= HTTP_UNTAKEN_PER_UID / 2;
}

bool http_has_gone(const struct http_request *request)
{
    const struct exchange *exchange = http_exchange_of(request);
    struct pollfd client = {.fd = exchange->finished ? -1 : exchange->connection->fd};

    return exchange->finished || (poll(&client, 1, 0) > 0 && client.revents & (POLLHUP | POLLERR));
}

void http_reply(struct http_request *request, int status, json_t *body)
{
    reply_with_text(request, (unsigned)status, "application/json", text_of(body));
}

void http_reply_empty(struct http_request *request)
{
    http_reply_with(request, MHD_HTTP_NO_CONTENT,
                    MHD_create_response_from_buffer(0, (char[]){""}, MHD_RESPMEM_PERSISTENT));
}

void http_reply_stopping(struct http_request *request)
{
    http_reply_with(request, MHD_HTTP_SERVICE_UNAVAILABLE, stopping_response());
}

void http_reply_text(struct http_request *request, const char *type, char *text)
{
    reply_with_text(request, MHD_HTTP_OK, type, text);
}

static bool has_already(const struct exchange *exchange, const char *etag)
{
    const char *known = exchange->finished ? NULL
                                           : MHD_lookup_connection_value(exchange->mhd_connection, MHD_HEADER_KIND,
                                                                         MHD_HTTP_HEADER_IF_NONE_MATCH);

    return known && strstr(known, etag);
}

void http_reply_file(struct http_request *request, const struct http_file *file)
{
    bool unchanged = has_already(http_exchange_of(request), file->etag);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        unchanged ? 0 : file->length, (void *)(uintptr_t)file->bytes, MHD_RESPMEM_PERSISTENT); /* which it only reads */

    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, file->etag);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        for (size_t i = 0; i < HTTP_FILE_HEADERS && file->headers[i].name; i++)
            MHD_add_response_header(response, file->headers[i].name, file->headers[i].value);
    }
    http_reply_with(request, unchanged ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}

void http_reply_error(struct http_request *request, int status, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    http_reply_with(request, (unsigned)status, http_error_response(text));
}
