/* A server of src/http on a thread of its own, for the tests of http and of client. Its answers: /echo          the
 * request, as JSON
 *   /later         the same, after 30 ms
 *   /never         only when the server stops
 *   /big?bytes=N   a text of N bytes
 * /gate          the request, but holds up the server until the test opens the gate
 * /nap           the request, but holds up the server for 10 ms
 *   /stream        a stream, of which `open` says how many there are
 * /tell?bytes=N  the request; all streams are sent N bytes /end           the request; all streams are closed
 *   /fail?status=N an error with that status, naming the path */
#ifndef CARMA_TESTS_HTTP_FIXTURE_H
#define CARMA_TESTS_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/http.h"

#define FIXTURE_PENDING_MAX 16
#define FIXTURE_STREAMS_MAX 16

struct http_fixture;

struct fixture_stream {
    struct http_fixture *fixture;
    struct http_stream *stream; /* NULL: a free place */
};

struct http_fixture {
    char directory[64];
    char path[96];
    char tcp_address[32]; /* with http_fixture_add_tcp */
    char token_path[96];
    struct http_options options; /* limits: set before http_fixture_start */
    struct http_server *server;
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    struct http_request *pending[FIXTURE_PENDING_MAX]; /* of /never */
    atomic_int pending_count;
    struct fixture_stream streams[FIXTURE_STREAMS_MAX];
    atomic_int open;   /* streams */
    atomic_int closed; /* of them, ever, read or unread */
    atomic_int handled;
    atomic_bool gate_open;
    bool running;
};

static void fixture_echo(struct http_request *request)
{
    const char *state = http_query(request, "state");
    json_t *reply =
        json_pack("{s:s, s:s, s:I, s:I, s:I}", "method", request->method, "path", request->path, "length",
                  (json_int_t)request->body_length, "uid", (json_int_t)request->uid, "pid", (json_int_t)request->pid);

    json_object_set_new(reply, "body", json_string(request->body));
    json_object_set_new(reply, "state", state ? json_string(state) : json_null());
    http_reply(request, 200, reply);
}

#define FIXTURE_FILE "a file"
#define FIXTURE_ETAG "\"0123\""

static void fixture_file(struct http_request *request)
{
    http_reply_file(request, &(struct http_file){.bytes = FIXTURE_FILE,
                                                 .length = strlen(FIXTURE_FILE),
                                                 .etag = FIXTURE_ETAG,
                                                 .headers = {{"Content-Type", "text/html"}, {"X-Such", "so"}}});
}

static inline bool fixture_is_public(const char *path)
{
    return !strcmp(path, "/file");
}

static void fixture_timer_closed(uv_handle_t *timer)
{
    free(timer);
}

static void fixture_on_timer(uv_timer_t *timer)
{
    fixture_echo(timer->data);
    uv_close((uv_handle_t *)timer, fixture_timer_closed);
}

static void fixture_on_closed(void *user)
{
    struct fixture_stream *place = user;

    place->stream = NULL;
    place->fixture->open--;
    place->fixture->closed++;
}

static void fixture_stream(struct http_fixture *fixture, struct http_request *request)
{
    struct fixture_stream *place = fixture->streams;

    while (place->stream)
        place++;
    place->fixture = fixture;
    place->stream = http_stream_begin(request, "text/event-stream", fixture_on_closed, place);
    fixture->open += place->stream != NULL;
}

/* `bytes` of '.'; less than none: the end. */
static void fixture_tell(struct http_fixture *fixture, long bytes)
{
    char *text = xmalloc(bytes > 0 ? (size_t)bytes : 1);

    memset(text, '.', bytes > 0 ? (size_t)bytes : 1);
    for (int i = 0; i < FIXTURE_STREAMS_MAX; i++) {
        struct fixture_stream *place = &fixture->streams[i];

        if (!place->stream)
            continue;
        if (bytes >= 0) {
            http_stream_send(place->stream, text, (size_t)bytes);
        } else {
            http_stream_close(place->stream);
            place->stream = NULL;
            fixture->open--;
        }
    }
    free(text);
}

static void fixture_handle(struct http_request *request, void *user)
{
    struct http_fixture *fixture = user;

    fixture->handled++;
    if (!strcmp(request->path, "/echo")) {
        fixture_echo(request);
    } else if (!strcmp(request->path, "/later")) {
        uv_timer_t *timer = xcalloc(1, sizeof *timer);

        timer->data = request;
        uv_timer_init(&fixture->loop, timer);
        uv_timer_start(timer, fixture_on_timer, 30, 0);
    } else if (!strcmp(request->path, "/file")) {
        fixture_file(request);
    } else if (!strcmp(request->path, "/gate")) {
        while (!fixture->gate_open)
            usleep(1000);
        fixture_echo(request);
    } else if (!strcmp(request->path, "/nap")) {
        usleep(10000);
        fixture_echo(request);
    } else if (!strcmp(request->path, "/never") && fixture->pending_count < FIXTURE_PENDING_MAX) {
        fixture->pending[fixture->pending_count] = request;
        fixture->pending_count++;
    } else if (!strcmp(request->path, "/stream")) {
        fixture_stream(fixture, request);
    } else if (!strcmp(request->path, "/tell") || !strcmp(request->path, "/end")) {
        fixture_tell(fixture, !strcmp(request->path, "/tell") ? atol(http_query(request, "bytes")) : -1);
        fixture_echo(request);
    } else if (!strcmp(request->path, "/big")) {
        size_t bytes = (size_t)atoll(http_query(request, "bytes"));
        char *text = xmalloc(bytes + 1);

        memset(text, 'b', bytes);
        text[bytes] = '\0';
        http_reply(request, 200, json_pack("{s:o}", "text", json_stringn_nocheck(text, bytes)));
        free(text);
    } else {
        const char *status = http_query(request, "status");

        http_reply_error(request, status ? atoi(status) : 404, "%s: no such thing", request->path);
    }
}

static void fixture_on_stop(uv_async_t *async)
{
    struct http_fixture *fixture = async->data;

    http_server_free(fixture->server);
    for (int i = 0; i < fixture->pending_count; i++)
        http_reply(fixture->pending[i], 200, json_object());
    uv_close((uv_handle_t *)async, NULL);
}

static void *fixture_main(void *user)
{
    struct http_fixture *fixture = user;

    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    return NULL;
}

static int http_fixture_prepare(struct http_fixture *fixture)
{
    memset(fixture, 0, sizeof *fixture);
    snprintf(fixture->directory, sizeof fixture->directory, "/tmp/carma-http-XXXXXX");
    if (!mkdtemp(fixture->directory))
        return -1;
    snprintf(fixture->path, sizeof fixture->path, "%s/carma.sock", fixture->directory);
    return 0;
}

#define FIXTURE_TOKEN "0123456789abcdefghijklmnopqrstuv"

/* Before http_fixture_start: it listens on a free port of 127.0.0.1 too. */
static inline int http_fixture_add_tcp(struct http_fixture *fixture)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof any;
    int port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), token;
    bool chosen =
        bind(port, (struct sockaddr *)&any, sizeof any) == 0 && getsockname(port, (struct sockaddr *)&any, &size) == 0;

    close(port);
    snprintf(fixture->tcp_address, sizeof fixture->tcp_address, "127.0.0.1:%u", ntohs(any.sin_port));
    snprintf(fixture->token_path, sizeof fixture->token_path, "%s/token", fixture->directory);
    token = open(fixture->token_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    chosen = chosen && token >= 0 && write(token, FIXTURE_TOKEN "\n", strlen(FIXTURE_TOKEN) + 1) > 0;
    close(token);
    fixture->options.tcp_address = fixture->tcp_address;
    fixture->options.token_file = fixture->token_path;
    return chosen ? 0 : -1;
}

static int http_fixture_start(struct http_fixture *fixture, struct error *err)
{
    int rc;

    uv_loop_init(&fixture->loop);
    fixture->options.loop = &fixture->loop;
    fixture->options.socket_path = fixture->path;
    fixture->options.handle = fixture_handle;
    fixture->options.user = fixture;
    fixture->pending_count = 0;
    fixture->open = fixture->closed = 0;
    rc = http_server_new(&fixture->options, &fixture->server, err);
    if (rc) {
        uv_run(&fixture->loop, UV_RUN_DEFAULT);
        uv_loop_close(&fixture->loop);
        return rc;
    }
    fixture->stop.data = fixture;
    uv_async_init(&fixture->loop, &fixture->stop, fixture_on_stop);
    fixture->running = pthread_create(&fixture->thread, NULL, fixture_main, fixture) == 0;
    return fixture->running ? 0 : -1;
}

static void http_fixture_stop(struct http_fixture *fixture)
{
    if (!fixture->running)
        return;
    uv_async_send(&fixture->stop);
    pthread_join(fixture->thread, NULL);
    uv_loop_close(&fixture->loop);
    fixture->running = false;
}

static int http_fixture_remove(struct http_fixture *fixture)
{
    http_fixture_stop(fixture);
    unlink(fixture->path);
    unlink(fixture->token_path);
    return rmdir(fixture->directory);
}

#endif
