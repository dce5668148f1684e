#include "notify/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "client/client.h"
#include "client/connect.h"

#define CONNECT_NS (10 * NS_PER_SEC)
#define MOST_BYTES (64 << 20) /* of the events that have come and are not taken */

static const struct json_bounds most = {.values = 4 << 20, .depth = 16, .bytes = MOST_BYTES};

void stream_close(struct stream *stream)
{
    close_fd(&stream->fd);
    stream->fd = -1;
    http1_reply_release(&stream->reply);
}

int stream_open(struct stream *stream, const char *socket, struct error *err)
{
    static const char request[] = "GET /v1/events HTTP/1.1\r\nHost: carma\r\n\r\n";
    struct client *client = NULL;
    CLEANUP(free_ptr) char *place = NULL;
    int rc = client_open(socket, &client, err);

    stream->fd = -1;
    http1_reply_init(&stream->reply, MOST_BYTES);
    if (rc)
        return rc;
    place = xstrdup(client_socket(client));
    client_free(client);
    if (connect_tcp_of(place))
        return error_set(err, EINVAL, "%s: carma-notify follows a Unix socket: name one with --socket", place);
    rc = connect_to(place, nodetime_monotonic_wall_ns() + CONNECT_NS, &stream->fd, err);
    if (rc == -ETIMEDOUT)
        error_set(err, ETIMEDOUT, "%s: the daemon takes no connection", place);
    if (rc)
        return rc;
    if (send(stream->fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1) {
        rc = error_set(err, errno ? errno : EIO, "%s: %s", place, strerror(errno));
        stream_close(stream);
    }
    return rc;
}

/* "event: NAME\ndata: JSON" */
static void take_event(char *text, void (*take)(void *user, const char *name, const json_t *data), void *user)
{
    char *data = strstr(text, "\ndata: ");
    json_t *json = NULL;

    if (strncmp(text, "event: ", 7) != 0 || !data)
        return; /* a comment */
    *data = '\0';
    data += 7;
    if (json_read(data, strlen(data), 0, &most, &json, NULL) == 0)
        take(user, text + 7, json);
    json_decref(json);
}

static void take_events(struct strbuf *body, void (*take)(void *user, const char *name, const json_t *data), void *user)
{
    char *at = body->text, *end;

    while (at && (end = strstr(at, "\n\n"))) {
        *end = '\0';
        take_event(at, take, user);
        at = end + 2;
    }
    if (!at || at == body->text)
        return;
    body->length -= (size_t)(at - body->text);
    memmove(body->text, at, body->length + 1);
}

int stream_read(struct stream *stream, void (*take)(void *user, const char *name, const json_t *data), void *user,
                struct error *err)
{
    static char bytes[256 << 10];
    ssize_t count = recv(stream->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    int rc = 0;

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (count <= 0)
        rc = error_set(err, count < 0 ? errno : EPIPE, "the daemon has closed the stream");
    if (!rc)
        rc = http1_reply_feed(&stream->reply, bytes, (size_t)count, err);
    if (!rc && stream->reply.state > HTTP1_HEADER && stream->reply.status != 200)
        rc = error_set(err, EPROTO, "the daemon answers with status %d", stream->reply.status);
    if (!rc && stream->reply.status == 200)
        take_events(&stream->reply.body, take, user);
    if (rc)
        stream_close(stream);
    return rc;
}
