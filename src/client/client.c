#include "client/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/trust/token.h"
#include "base/units.h"
#include "client/connect.h"
#include "client/http1.h"
#include "config/config.h"

struct client {
    char *socket_path;
    int fd; /* -1: not connected */
    int64_t timeout_ms;
    struct token token; /* over TCP */
};

/* Where the user's own carmad listens by default; or root's, where there is only that, or its state while it is
 * stopped. */
static char *find_socket(void)
{
    const char *chosen = getenv("CARMA_SOCKET");
    char *path;

    if (chosen && *chosen)
        return xstrdup(chosen);
    path = config_default_socket();
    if (access(path, F_OK) != 0 &&
        (access(CONFIG_SYSTEM_SOCKET, F_OK) == 0 || access(CONFIG_SYSTEM_STATE_DIRECTORY, F_OK) == 0)) {
        free(path);
        path = xstrdup(CONFIG_SYSTEM_SOCKET);
    }
    return path;
}

static void disconnect(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

static int timed_out(const struct client *client, struct error *err)
{
    return error_set(err, ETIMEDOUT, "%s: the daemon has not answered for %lld s: is carmad stopped or very busy?",
                     client->socket_path, (long long)(client->timeout_ms / 1000));
}

/* poll(2) until the deadline; 1, or -ETIMEDOUT. */
static int wait_for(const struct client *client, short events, int64_t deadline_ns, short *ready, struct error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = client->fd, .events = events};
        int64_t left_ms = (deadline_ns - nodetime_monotonic_wall_ns() + NS_PER_MS - 1) / NS_PER_MS;
        int count;

        if (left_ms <= 0)
            return timed_out(client, err);
        count = poll(&fd, 1, left_ms > 1000000 ? 1000000 : (int)left_ms);
        if (count < 0 && errno != EINTR)
            return error_set(err, errno, "%s: %s", client->socket_path, strerror(errno));
        if (count > 0) {
            *ready = fd.revents;
            return 0;
        }
    }
}

static int connect_socket(struct client *client, int64_t deadline_ns, struct error *err)
{
    int rc = connect_to(client->socket_path, deadline_ns, &client->fd, err);

    return rc == -ETIMEDOUT ? timed_out(client, err) : rc;
}

static int64_t deadline_of(const struct client *client)
{
    return nodetime_monotonic_wall_ns() + client->timeout_ms * NS_PER_MS;
}

/* Over TCP only the token tells the daemon our user. */
static int take_token(struct client *client, struct error *err)
{
    const char *path = getenv("CARMA_TOKEN_FILE");

    if (!path || !*path)
        return error_set(err, EACCES, "%s: needs a token: name the file that holds it in CARMA_TOKEN_FILE",
                         client->socket_path);
    return token_read(path, &client->token, err);
}

int client_open(const char *socket_path, struct client **opened, struct error *err)
{
    return client_open_within(socket_path, CLIENT_TIMEOUT_MS, opened, err);
}

int client_open_within(const char *socket_path, int64_t timeout_ms, struct client **opened, struct error *err)
{
    struct client *client = xcalloc(1, sizeof *client);
    int rc;

    client->fd = -1;
    client->timeout_ms = timeout_ms;
    client->socket_path = socket_path ? xstrdup(socket_path) : find_socket();
    rc = connect_tcp_of(client->socket_path) ? take_token(client, err) : 0;
    if (!rc)
        rc = connect_socket(client, deadline_of(client), err);
    if (rc)
        client_free(client);
    else
        *opened = client;
    return rc;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    disconnect(client);
    explicit_bzero(&client->token, sizeof client->token);
    free(client->socket_path);
    free(client);
}

void client_rest(struct client *client)
{
    disconnect(client);
}

const char *client_socket(const struct client *client)
{
    return client->socket_path;
}

void client_set_timeout(struct client *client, int64_t timeout_ms)
{
    client->timeout_ms = timeout_ms;
}

/* Sends until all is sent, or the server answers (it may refuse without reading to the end) or goes. */
static int send_request(struct client *client, const struct strbuf *request, int64_t deadline_ns, size_t *sent,
                        struct error *err)
{
    while (*sent < request->length) {
        short ready;
        int rc = wait_for(client, POLLIN | POLLOUT, deadline_ns, &ready, err);
        ssize_t count;

        if (rc)
            return rc;
        if (ready & POLLIN)
            return 0;
        count = send(client->fd, request->text + *sent, request->length - *sent, MSG_NOSIGNAL);
        if (count >= 0)
            *sent += (size_t)count;
        else if (errno == EPIPE || errno == ECONNRESET)
            return 0; /* reading shows whether it said why */
        else if (errno != EAGAIN && errno != EINTR)
            return error_set(err, errno, "%s: cannot send: %s", client->socket_path, strerror(errno));
    }
    return 0;
}

static int receive_reply(struct client *client, struct http1_reply *reply, int64_t deadline_ns, struct error *err)
{
    CLEANUP(free_ptr) char *buffer = xmalloc(64 * KIB);
    int rc = 0;

    while (!rc && reply->state != HTTP1_DONE) {
        ssize_t count = recv(client->fd, buffer, 64 * KIB, 0);
        short ready;

        if (count > 0)
            rc = http1_reply_feed(reply, buffer, (size_t)count, err);
        else if (count == 0 || errno == ECONNRESET)
            return http1_reply_close(reply, err);
        else if (errno == EAGAIN)
            rc = wait_for(client, POLLIN, deadline_ns, &ready, err);
        else if (errno != EINTR)
            return error_set(err, errno, "%s: cannot receive: %s", client->socket_path, strerror(errno));
    }
    return rc;
}

/* One attempt on the present connection. *unanswered: the server closed it without a word. */
static int attempt(struct client *client, const struct strbuf *request, struct http1_reply *reply, int64_t deadline_ns,
                   size_t *sent, bool *unanswered, struct error *err)
{
    int rc = send_request(client, request, deadline_ns, sent, err);

    if (!rc)
        rc = receive_reply(client, reply, deadline_ns, err);
    *unanswered = rc == -EPROTO && !reply->begun;
    if (rc || !reply->keep_alive || *sent < request->length)
        disconnect(client);
    return rc;
}

static int exchange(struct client *client, bool repeatable, const struct strbuf *request, struct http1_reply *reply,
                    struct error *err)
{
    int64_t deadline_ns = deadline_of(client);
    bool unanswered = false;
    size_t sent = 0;
    int rc = 0;

    if (client->fd < 0)
        rc = connect_socket(client, deadline_ns, err);
    if (!rc)
        rc = attempt(client, request, reply, deadline_ns, &sent, &unanswered, err);
    /* The server has closed the idle connection, or did just as we began: once more, where that can do no harm. */
    if (unanswered && (repeatable || sent == 0)) {
        unanswered = false;
        sent = 0;
        rc = connect_socket(client, deadline_ns, err);
        if (!rc)
            rc = attempt(client, request, reply, deadline_ns, &sent, &unanswered, err);
    }
    if (unanswered)
        rc = error_set(err, ECONNRESET, "%s: the daemon closed the connection without an answer%s", client->socket_path,
                       repeatable ? ": try again"
                                  : ": whether the request was carried out is not known, look before trying again");
    return rc;
}

static int build_request(const struct client *client, const char *method, const char *path, const json_t *body,
                         struct strbuf *request, struct error *err)
{
    const char *tcp = connect_tcp_of(client->socket_path);
    CLEANUP(free_ptr) char *text = body ? json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    if (body && !text)
        return error_set(err, EINVAL, "%s %s: the request cannot be written as JSON", method, path);
    strbuf_printf(request, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, tcp ? tcp : "carma");
    if (tcp)
        strbuf_printf(request, "Authorization: Bearer %s\r\n", client->token.text);
    if (text)
        strbuf_printf(request, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", strlen(text));
    else
        strbuf_printf(request, "%s\r\n", strcmp(method, "GET") == 0 ? "" : "Content-Length: 0\r\n");
    if (text)
        strbuf_puts(request, text);
    return 0;
}

static int parse_reply(const struct client *client, const struct http1_reply *reply, json_t **json, struct error *err)
{
    /* A list has 10,000 jobs, of some hundred values and names each. */
    static const struct json_bounds bounds = {.values = 4 << 20, .depth = 32, .bytes = CLIENT_REPLY_LIMIT_BYTES};
    struct error why;

    if (reply->status == 204) /* No Content */
        return 0;
    if (json_read(reply->body.text ? reply->body.text : "", reply->body.length, 0, &bounds, json, &why) != 0 &&
        reply->status < 300)
        return error_set(err, EPROTO, "%s: the answer: %s: does something else than carmad listen there?",
                         client->socket_path, why.text);
    return 0;
}

bool client_may_repeat(const char *method, const json_t *body)
{
    return strcmp(method, "GET") == 0 || json_object_get(body, "request_id");
}

int client_call(struct client *client, const char *method, const char *path, const json_t *body, int *status,
                json_t **json, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf request = {0};
    CLEANUP(http1_reply_release) struct http1_reply reply;
    int rc;

    *json = NULL;
    http1_reply_init(&reply, CLIENT_REPLY_LIMIT_BYTES);
    rc = build_request(client, method, path, body, &request, err);
    if (!rc)
        rc = exchange(client, client_may_repeat(method, body), &request, &reply, err);
    if (rc)
        return rc;
    *status = reply.status;
    return parse_reply(client, &reply, json, err);
}

void client_request_id(char id[static CLIENT_REQUEST_ID_TEXT])
{
    unsigned char bytes[(CLIENT_REQUEST_ID_TEXT - 1) / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort(); /* as when memory runs out: so few bytes the kernel always has */
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
}

int client_check(int status, const json_t *reply, struct error *err)
{
    static const struct {
        int status;
        int code;
    } codes[] = {{400, EINVAL}, {401, EACCES}, {403, EPERM},  {404, ENOENT}, {405, EOPNOTSUPP},
                 {409, EBUSY},  {413, EFBIG},  {422, ERANGE}, {503, EAGAIN}};
    const char *text = json_string_value(json_object_get(reply, "error"));
    int code = EIO;

    if (status >= 200 && status < 300)
        return 0;
    for (size_t i = 0; i < array_size(codes); i++)
        if (codes[i].status == status)
            code = codes[i].code;
    if (json_is_true(json_object_get(reply, "stopping")))
        code = ESHUTDOWN;
    if (json_is_true(json_object_get(reply, "busy")))
        code = CLIENT_BUSY;
    if (text)
        return error_set(err, code, "%s", text);
    return error_set(err, code, "the daemon answered with HTTP status %d and no explanation", status);
}
