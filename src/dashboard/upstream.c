#include "dashboard/upstream.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "client/connect.h"

#define CONNECT_NS (10 * NS_PER_SEC)
/* The daemon lets streams speak every 15 s, and gives up one that stands still for as long. */
#define SILENCE_MS 120000

void upstream_init(struct upstream *upstream, int browser, bool head_only)
{
    *upstream = (struct upstream){.fd = -1, .browser = browser};
    http1_reply_init(&upstream->reply, SIZE_MAX);
    upstream->reply.head_only = head_only;
}

void upstream_release(struct upstream *upstream)
{
    close_fd(&upstream->fd);
    http1_reply_release(&upstream->reply);
}

int upstream_connect(struct upstream *upstream, const char *place, struct error *err)
{
    return connect_to(place, nodetime_monotonic_wall_ns() + CONNECT_NS, &upstream->fd, err);
}

/* Until the daemon's socket is ready for one of the events. */
static int wait_for(const struct upstream *upstream, short events, short *ready, struct error *err)
{
    struct pollfd fds[] = {{.fd = upstream->fd, .events = events}, {.fd = upstream->browser, .events = POLLRDHUP}};
    int count;

    do
        count = poll(fds, array_size(fds), SILENCE_MS);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return error_set(err, errno, "cannot wait for the daemon: %s", strerror(errno));
    if (fds[1].revents)
        return error_set(err, EPIPE, "the browser has gone");
    *ready = fds[0].revents;
    return count
               ? 0
               : error_set(err, ETIMEDOUT, "the daemon has not answered for too long: is carmad stopped or very busy?");
}

int upstream_send(struct upstream *upstream, const char *bytes, size_t length, struct error *err)
{
    short ready;
    int rc;

    while (length && !upstream->refusing) {
        ssize_t count;

        if ((rc = wait_for(upstream, POLLIN | POLLOUT, &ready, err)))
            return rc;
        count = ready & POLLIN ? -1 : send(upstream->fd, bytes, length, MSG_NOSIGNAL);
        if (count >= 0) {
            bytes += count;
            length -= (size_t)count;
        } else if (ready & POLLIN || (errno != EAGAIN && errno != EINTR)) {
            upstream->refusing = true; /* why, its answer says */
        }
    }
    return 0;
}

/* Takes in some more of the answer, at most `size` bytes. */
static int receive(struct upstream *upstream, size_t size, struct error *err)
{
    char block[64 * KIB];
    short ready;
    ssize_t count;
    int rc = wait_for(upstream, POLLIN, &ready, err);

    if (rc)
        return rc;
    count = recv(upstream->fd, block, size < sizeof block ? size : sizeof block, 0);
    if (count > 0)
        return http1_reply_feed(&upstream->reply, block, (size_t)count, err);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return http1_reply_close(&upstream->reply, err);
}

int upstream_answer(struct upstream *upstream, struct error *err)
{
    int rc = 0;

    while (!rc && upstream->reply.state <= HTTP1_HEADER)
        rc = receive(upstream, SIZE_MAX, err);
    return rc;
}

ssize_t upstream_read(struct upstream *upstream, char *bytes, size_t size)
{
    struct strbuf *body = &upstream->reply.body;
    size_t count;
    struct error err;
    int rc;

    while (upstream->read_bytes == body->length) {
        strbuf_clear(body);
        upstream->read_bytes = 0;
        if (upstream->reply.state == HTTP1_DONE)
            return 0;
        if ((rc = receive(upstream, size, &err)))
            return rc;
    }
    count = body->length - upstream->read_bytes < size ? body->length - upstream->read_bytes : size;
    memcpy(bytes, body->text + upstream->read_bytes, count);
    upstream->read_bytes += count;
    return (ssize_t)count;
}
