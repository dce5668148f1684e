/* Raw sockets against the server of http_fixture.h. */
#ifndef CARMA_TESTS_HTTP_RAW_H
#define CARMA_TESTS_HTTP_RAW_H

#include "unit.h"

#include <sys/time.h>

#include "base/net/address.h"
#include "http_fixture.h"

#define HOST      "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define GET_ECHO  GET("/echo")
#define BEARER    "Authorization: Bearer " FIXTURE_TOKEN "\r\n"

static struct http_fixture fixture;

static inline void start(void)
{
    struct error err = {{0}};

    fail_if(http_fixture_start(&fixture, &err), err);
}

static inline void restart(void)
{
    http_fixture_stop(&fixture);
    start();
}

static inline int start_with_tcp(void **state)
{
    if (http_fixture_prepare(&fixture) || http_fixture_add_tcp(&fixture))
        return -1;
    start();
    return 0;
}

/* The test's connections, for remove_fixture. */
static int connections[512];
static size_t connection_count;

/* Also closes what the test has left open, once nothing else in this process opens descriptors. */
static inline int remove_fixture(void **state)
{
    int rc = http_fixture_remove(&fixture);

    while (connection_count)
        close(connections[--connection_count]);
    return rc;
}

static inline int connect_to(int family, const void *address, size_t length)
{
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, address, (socklen_t)length) < 0)
        fail_msg("connect: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connection_count < array_size(connections))
        connections[connection_count++] = fd;
    return fd;
}

static inline struct sockaddr_un unix_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

static inline int connect_to_path(const char *path)
{
    struct sockaddr_un address = unix_address(path);

    return connect_to(AF_UNIX, &address, sizeof address);
}

static inline int connect_raw(void)
{
    return connect_to_path(fixture.path);
}

static inline int connect_by_tcp(void)
{
    struct address address;

    assert_int_equal(address_parse(fixture.tcp_address, &address), 0);
    return connect_to(AF_INET, &address.socket, address.length);
}

static inline void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads one answer, header and Content-Length bytes; returns its status, 0 where the server closed instead. */
static inline int read_answer(int fd, struct strbuf *answer)
{
    size_t wanted = 0;

    strbuf_clear(answer);
    while (!wanted || answer->length < wanted) {
        const char *end, *length;
        char byte[4096];
        ssize_t count =
            recv(fd, byte, wanted ? (wanted - answer->length < 4096 ? wanted - answer->length : 4096) : 1, 0);

        if (count == 0 || (count < 0 && errno == ECONNRESET))
            return 0;
        if (count < 0 && errno == EINTR) /* the end of a child of the server's */
            continue;
        if (count < 0)
            fail_msg("no answer: %s", strerror(errno));
        strbuf_append(answer, byte, (size_t)count);
        end = wanted ? NULL : strstr(answer->text, "\r\n\r\n");
        if (end) {
            length = strcasestr(answer->text, "Content-Length: ");
            assert_non_null(length);
            wanted = (size_t)(end + 4 - answer->text) + (size_t)atoll(length + 16);
        }
    }
    assert_memory_equal(answer->text, "HTTP/1.1 ", 9);
    return atoi(answer->text + 9);
}

static inline void expect(int fd, int status, const char *says)
{
    struct strbuf answer = {0};
    int got = read_answer(fd, &answer);

    if (got != status || (says && !strstr(answer.text, says)))
        fail_msg("status %d: %s", got, answer.text ? answer.text : "(closed)");
    strbuf_release(&answer);
}

static inline void ask(int fd, const char *request, int status, const char *says)
{
    send_text(fd, request);
    expect(fd, status, says);
}

static inline void expect_closed(int fd)
{
    char rest[256];
    ssize_t count = recv(fd, rest, sizeof rest, 0);

    if (count > 0)
        fail_msg("not closed, but: %.*s", (int)count, rest);
    assert_true(count == 0 || (count < 0 && errno == ECONNRESET));
    close(fd);
}

/* Reads until the server closes: what comes begins so. libmicrohttpd 0.9.75 may send the header of its own refusals
 * twice. */
static inline void expect_refused(int fd, const char *status_line, const char *what)
{
    char text[8192] = "";
    size_t length = 0;
    ssize_t count;

    while ((count = recv(fd, text + length, sizeof text - 1 - length, 0)) > 0)
        length += (size_t)count;
    if (!(count == 0 || errno == ECONNRESET))
        fail_msg("%s: not closed: %s", what, text);
    if (strncmp(text, status_line, strlen(status_line)) != 0)
        fail_msg("%s: not \"%s\", but: %s", what, status_line, text);
    close(fd);
}

/* The connection is of no more use after it. */
static inline void refused(int fd, const char *request, const char *status_line)
{
    send_text(fd, request);
    expect_refused(fd, status_line, request);
}

#endif
