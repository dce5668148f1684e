#include "slurm/plugin/http.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int64_t http_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - http_now_ms();
        if (left <= 0)
            return -ETIMEDOUT;
        struct pollfd one = {.fd = fd, .events = events};
        int ready = poll(&one, 1, left > 60000 ? 60000 : (int)left);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return -errno;
    }
}

static int open_socket(const char *path, int64_t deadline_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int code = -errno;
        /* A Unix socket answers EAGAIN while too many wait for it, and no poll tells when that has changed. */
        if (code == -EAGAIN && http_now_ms() < deadline_ms) {
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        } else if (code != -EINTR) {
            close(fd);
            return code == -EAGAIN ? -ETIMEDOUT : code;
        }
    }
    return fd;
}

static int send_all(int fd, const char *bytes, size_t length, int64_t deadline_ms)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            int code = wait_for(fd, POLLOUT, deadline_ms);
            if (code < 0)
                return code;
        } else if (sent < 0 && errno != EINTR) {
            return -errno;
        } else if (sent > 0) {
            bytes += sent;
            length -= (size_t)sent;
        }
    }
    return 0;
}

/* The value of a header of the answer's head; NULL where it has none. */
static const char *header_of(const char *head, size_t length, const char *name)
{
    size_t wide = strlen(name);
    const char *end = head + length;
    for (const char *line = head; line + wide < end;) {
        if (strncasecmp(line, name, wide) == 0)
            return line + wide;
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (newline == NULL)
            return NULL;
        line = newline + 1;
    }
    return NULL;
}

int http_read_answer(const char *bytes, size_t length, int *status, const char **body, size_t *body_length)
{
    const char *blank = memmem(bytes, length, "\r\n\r\n", 4);
    if (blank == NULL)
        return length > 16384 ? -EPROTO : -EAGAIN;
    size_t head = (size_t)(blank - bytes) + 2;
    if (length < 12 || memcmp(bytes, "HTTP/1.", 7) != 0 || bytes[8] != ' ')
        return -EPROTO;
    *status = 0;
    for (int i = 9; i < 12; i++) {
        if (bytes[i] < '0' || bytes[i] > '9')
            return -EPROTO;
        *status = *status * 10 + (bytes[i] - '0');
    }
    const char *value = header_of(bytes, head, "Content-Length:");
    size_t said = 0;
    if (value != NULL) {
        while (*value == ' ')
            value++;
        for (; *value >= '0' && *value <= '9' && said <= HTTP_LIMIT_BYTES; value++)
            said = said * 10 + (size_t)(*value - '0');
        if (*value != '\r')
            return -EPROTO;
    } else if (*status != 204) {
        return -EPROTO;
    }
    *body = blank + 4;
    *body_length = said;
    return length - head - 2 < said ? -EAGAIN : 0;
}

static int receive(int fd, int64_t deadline_ms, int *status, struct text *answer)
{
    struct text raw = {0};
    char part[8192];
    const char *body = NULL;
    size_t body_length = 0;
    int code = -EAGAIN;
    while (code == -EAGAIN) {
        ssize_t got = recv(fd, part, sizeof(part), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            code = wait_for(fd, POLLIN, deadline_ms);
            code = code == 0 ? -EAGAIN : code;
            continue;
        }
        if (got <= 0) {
            code = got < 0 ? -errno : -ECONNRESET;
            break;
        }
        text_add(&raw, part, (size_t)got);
        if (raw.failed)
            code = -ENOMEM;
        else if (raw.length > HTTP_LIMIT_BYTES)
            code = -EMSGSIZE;
        else
            code = http_read_answer(raw.bytes, raw.length, status, &body, &body_length);
    }
    if (code == 0) {
        text_add(answer, body, body_length);
        code = answer->failed ? -ENOMEM : 0;
    }
    text_release(&raw);
    return code;
}

int http_send(const char *socket_path, const char *method, const char *path, const struct text *body,
              int64_t deadline_ms)
{
    struct text request = {0};
    text_printf(&request, "%s %s HTTP/1.1\r\nHost: carma\r\nConnection: close\r\n", method, path);
    if (body != NULL)
        text_printf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body->length);
    text_add(&request, "\r\n", 2);
    if (body != NULL && body->length > 0)
        text_add(&request, body->bytes, body->length);
    int code = request.failed || (body != NULL && body->failed) ? -ENOMEM : 0;
    int fd = code == 0 ? open_socket(socket_path, deadline_ms) : code;
    if (fd >= 0 && (code = send_all(fd, request.bytes, request.length, deadline_ms)) != 0) {
        close(fd);
        fd = code;
    }
    text_release(&request);
    return fd;
}

int http_hear(int fd, int64_t deadline_ms, int *status, struct text *answer)
{
    int code = receive(fd, deadline_ms, status, answer);
    close(fd);
    return code;
}

int http_ask(const char *socket_path, const char *method, const char *path, const struct text *body,
             int64_t deadline_ms, int *status, struct text *answer)
{
    int fd = http_send(socket_path, method, path, body, deadline_ms);
    return fd < 0 ? fd : http_hear(fd, deadline_ms, status, answer);
}
