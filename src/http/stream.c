/* Answers that go on. libmicrohttpd asks for more as the socket takes it. While there is nothing, the connection is
 * suspended: then neither it nor our deadline counts the silence. */
#include <string.h>
#include <utlist.h>

#include "base/handle.h"
#include "base/memory.h"
#include "http/http_internal.h"

#define BLOCK_BYTES 16384 /* libmicrohttpd asks for this much at a time */

/* Owned by its exchange, which lasts until libmicrohttpd has done with it. */
struct http_stream {
    struct exchange *exchange;
    struct strbuf text;         /* sent ... */
    size_t taken;               /* ... and of that taken by libmicrohttpd */
    bool counted;               /* takes a place */
    bool ended;                 /* nothing follows */
    bool cut;                   /* nor does the data here */
    void (*closed)(void *user); /* NULL: nobody wants to know */
    void *user;
    uv_poll_t *hangup; /* while libmicrohttpd does not listen; NULL: the end shows when something is sent */
};

static void wake(struct http_stream *stream)
{
    if (!stream->exchange->suspended)
        return;
    http_expect(stream->exchange->connection); /* to take it */
    http_resume(stream->exchange);
}

static void give_place_back(struct http_stream *stream)
{
    stream->exchange->peer->streams -= stream->counted;
    stream->exchange->server->streams -= stream->counted;
    stream->counted = false;
}

static void cut(struct http_stream *stream)
{
    give_place_back(stream);
    stream->cut = true;
    wake(stream);
    http_cut(stream->exchange->connection);
}

static ssize_t on_read(void *closure, uint64_t position, char *bytes, size_t most)
{
    struct http_stream *stream = closure;
    size_t left = stream->text.length - stream->taken;

    if (stream->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!left && stream->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!left) {
        strbuf_release(&stream->text); /* a first burst is much larger than later ones */
        stream->taken = 0;
        http_expect_nothing(stream->exchange->connection);
        stream->exchange->suspended = true;
        MHD_suspend_connection(stream->exchange->mhd_connection);
        return 0;
    }
    if (left > most)
        left = most;
    memcpy(bytes, stream->text.text + stream->taken, left);
    stream->taken += left;
    return (ssize_t)left;
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
    uv_poll_stop(poll);
    cut(poll->data);
}

/* A second descriptor watches the connection: a client that leaves while there is nothing to send must not keep its
 * place. */
static void watch(struct http_stream *stream, const struct http_server *server, int fd)
{
    uv_poll_t *poll = xmalloc(sizeof *poll);

    if (uv_poll_init(server->options.loop, poll, fd) != 0) {
        free(poll);
        return;
    }
    poll->data = stream;
    uv_poll_start(poll, UV_DISCONNECT, on_hangup);
    stream->hangup = poll;
}

/* As with connections: where all places are taken, the user with most streams loses the oldest, unless the newcomer
 * would then have as many. */
static void make_room(const struct http_server *server, const struct peer *newcomer)
{
    const struct peer *peer, *largest = newcomer;
    const struct exchange *exchange;

    DL_FOREACH (server->peers, peer)
        if (peer->streams > largest->streams)
            largest = peer;
    if (largest->streams <= newcomer->streams + 1)
        return;
    DL_FOREACH (server->exchanges, exchange)
        if (exchange->peer == largest && exchange->stream && exchange->stream->counted) {
            cut(exchange->stream);
            return;
        }
}

static const char *refusal(const struct http_server *server, const struct peer *peer)
{
    if (peer->streams >= server->options.max_streams_per_uid)
        return "you have too many streams open: close some";
    if (server->streams >= server->options.max_streams)
        make_room(server, peer);
    if (server->streams >= server->options.max_streams)
        return "the daemon has too many streams open: try again later";
    return NULL;
}

static struct MHD_Response *response_of(struct http_stream *stream, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, stream, NULL);

    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
    return response;
}

struct http_stream *http_stream_begin(struct http_request *request, const char *type, void (*closed)(void *user),
                                      void *user)
{
    struct exchange *exchange = http_exchange_of(request);
    struct MHD_Response *response;
    struct http_stream *stream;
    const char *why;

    if (exchange->finished || exchange->response) { /* nobody listens any more */
        http_reply_with(request, 0, NULL);
        return NULL;
    }
    why = refusal(exchange->server, exchange->peer);
    if (why) {
        http_reply_with(request, MHD_HTTP_SERVICE_UNAVAILABLE, http_error_response(why));
        return NULL;
    }
    stream = xcalloc(1, sizeof *stream);
    response = response_of(stream, type);
    if (!response) {
        free(stream);
        http_reply_with(request, 0, NULL); /* 500 */
        return NULL;
    }
    stream->exchange = exchange;
    stream->closed = closed;
    stream->user = user;
    exchange->stream = stream;
    stream->counted = true;
    exchange->peer->streams++;
    exchange->server->streams++;
    watch(stream, exchange->server, exchange->connection->fd);
    http_reply_with(request, MHD_HTTP_OK, response);
    return stream;
}

void http_stream_send(struct http_stream *stream, const char *text, size_t length)
{
    if (stream->cut || !length)
        return;
    if (length > HTTP_STREAM_LIMIT_BYTES - (stream->text.length - stream->taken)) {
        cut(stream);
        return;
    }
    if (stream->taken) { /* only untaken data is kept */
        memmove(stream->text.text, stream->text.text + stream->taken, stream->text.length - stream->taken);
        stream->text.length -= stream->taken;
        stream->taken = 0;
    }
    strbuf_append(&stream->text, text, length);
    wake(stream);
}

bool http_stream_taken(const struct http_stream *stream)
{
    return stream->exchange->suspended && stream->text.length == stream->taken;
}

void http_stream_finish(struct http_stream *stream)
{
    stream->ended = true;
    wake(stream);
}

void http_stream_close(struct http_stream *stream)
{
    stream->closed = NULL;
    http_stream_finish(stream);
}

void http_stream_over(struct http_stream *stream)
{
    give_place_back(stream);
    if (stream->hangup)
        uv_close((uv_handle_t *)stream->hangup, free_handle); /* before the descriptor is closed */
    stream->hangup = NULL;
    if (stream->closed)
        stream->closed(stream->user);
    stream->closed = NULL;
}

void http_stream_free(struct http_stream *stream)
{
    if (!stream)
        return;
    strbuf_release(&stream->text);
    free(stream);
}
