/* The HTTP server's refusals: heads with two readings, pages' requests, no token, slow and greedy clients. */

#include "base/trust/token.h"
#include "http/http_internal.h"
#include "http_raw.h"

#define TOKEN FIXTURE_TOKEN

static void write_file(const char *path, const char *text, size_t length, int mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

/* Each would be read by somebody as another request, or as two. */
TEST_BETWEEN(test_heads_that_can_be_read_in_two_ways, start_with_tcp, remove_fixture)
{
#define SMUGGLED GET("/echo?state=smuggled")
#define POST     "POST /echo HTTP/1.1\r\n" HOST
#define CASE(status, text)                                                                                             \
    {                                                                                                                  \
        status, text, sizeof(text) - 1                                                                                 \
    }
    static const struct {
        const char *status, *text;
        size_t length;
    } cases[] = {
        CASE("HTTP/1.1 411 ", POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
        CASE("HTTP/1.1 411 ", POST "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 411 ", POST "transfer-encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\r\nTransfer-Encoding : chunked\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\r\nTransfer-Encoding:\r\n chunked\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\r\nContent-Length: 64\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2, 2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: +2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 0x2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length : 2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\r\n 0\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "Content-Length: 2\0000\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", POST "X: a\r\n Content-Length: 2\r\n\r\n{}" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\r\n X: a\r\n" HOST "\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\r\n" HOST "X: a\rContent-Length: 5\r\n\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\r\n" HOST "X\x01: a\r\n\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\nHost: localhost\n\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo\0/never HTTP/1.1\r\n" HOST "\r\n" SMUGGLED),
        CASE("HTTP/1.1 400 ", "GET /echo HTTP/1.1\r\n" HOST "Host: elsewhere\r\n\r\n" SMUGGLED),
    };
    int fd;

    for (size_t i = 0; i < array_size(cases); i++) {
        fd = connect_raw();
        assert_int_equal(send(fd, cases[i].text, cases[i].length, MSG_NOSIGNAL), cases[i].length);
        expect_refused(fd, cases[i].status, cases[i].text);
        if (fixture.handled)
            fail_msg("handled: %s", cases[i].text);
    }
    /* And the second of a kept connection is looked at like the first. */
    fd = connect_raw();
    ask(fd, GET_ECHO POST "Content-Length: 2\r\nContent-Length: 64\r\n\r\n{}" SMUGGLED, 200, "\"/echo\"");
    expect_refused(fd, "HTTP/1.1 400 ", "the second");
    assert_int_equal(fixture.handled, 1);
}

/* A body that looks like a request is not one; the bytes after it are judged by themselves, as the same peer's. */
TEST_BETWEEN(test_requests_in_a_row, start_with_tcp, remove_fixture)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char peer[64];
    int fd = connect_raw();

    snprintf(peer, sizeof peer, "\"uid\":%u,\"pid\":%d", (unsigned)getuid(), (int)getpid());
    strbuf_printf(&text, POST "Content-Length: %zu\r\n\r\n%s%s", strlen(SMUGGLED), SMUGGLED, GET_ECHO);
    ask(fd, text.text, 200, "\"method\":\"POST\"");
    expect(fd, 200, "\"state\":null");
    ask(fd, GET_ECHO, 200, peer);
    assert_int_equal(fixture.handled, 3);
}

TEST_BETWEEN(test_paths_are_decoded_once, start_with_tcp, remove_fixture)
{
    static const char *const cases[][2] = {
        {"/a%2fb", "/a/b: no such"},        {"/%2e%2e/%2E%2e/etc/passwd", "/../../etc/passwd: no such"},
        {"/echo%00", "/echo%00: no such"},  {"/echo%00/../never", "/echo%00/../never: no such"},
        {"/%2500", "/%00: no such"},        {"/%zz%4", "/%zz%4: no such"},
        {"/echo?state=a%00b", "\"a%00b\""},
    };
    int fd = connect_raw();

    for (size_t i = 0; i < array_size(cases); i++) {
        CLEANUP(free_ptr) char *request = xasprintf("GET %s HTTP/1.1\r\n" HOST "\r\n", cases[i][0]);
        CLEANUP(strbuf_release) struct strbuf answer = {0};
        send_text(fd, request);
        read_answer(fd, &answer);
        if (!strstr(answer.text, cases[i][1]))
            fail_msg("%s: no '%s' in %s", cases[i][0], cases[i][1], answer.text);
    }
}

TEST_BETWEEN(test_hosts_and_origins, start_with_tcp, remove_fixture)
{
    static const char *const good[] = {"carma",       "localhost", "LocalHost:9000", "127.0.0.1",
                                       "10.1.2.3:80", "[::1]",     "[::1]:8471"};
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "carma.evil:80",
                                      "localhost:80@evil",
                                      "[::1",
                                      "::1",
                                      "1.2.3",
                                      "[127.0.0.1]"};
    int fd = connect_raw();

    for (size_t i = 0; i < array_size(good); i++) {
        CLEANUP(free_ptr) char *request = xasprintf("GET /echo HTTP/1.1\r\nHost: %s\r\n\r\n", good[i]);
        ask(fd, request, 200, NULL);
    }
    close(fd);
    for (size_t i = 0; i < array_size(bad); i++) {
        CLEANUP(free_ptr) char *request = xasprintf("GET /echo HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]);
        refused(connect_raw(), request, "HTTP/1.1 403 ");
    }
    refused(connect_raw(), POST "Origin: http://localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 403 ");
    refused(connect_raw(), POST "Origin: null\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 403 ");
    assert_int_equal(fixture.handled, array_size(good));
}

TEST_BETWEEN(test_tcp_needs_the_token, start_with_tcp, remove_fixture)
{
    static const char *const bad[] = {
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer 0123456789abcdefghijklmnopqrstuw\r\n",
        "Authorization: Bearer 0123456789abcdefghijklmnopqrstu\r\n",
        "Authorization: Bearer " TOKEN "v\r\n",
        "Authorization: Bearer  " TOKEN "\r\n",
        "Authorization: Basic " TOKEN "\r\n",
        "Authorization: " TOKEN "\r\n",
        BEARER BEARER,
        "Cookie: token=" TOKEN "\r\n",
    };
    char peer[64];

    for (size_t i = 0; i < array_size(bad); i++) {
        CLEANUP(free_ptr) char *request = xasprintf("GET /echo HTTP/1.1\r\n" HOST "%s\r\n", bad[i]);
        refused(connect_by_tcp(), request,
                strcmp(bad[i], "Authorization: Bearer\r\n") == 0 ? "HTTP/1.1 40" : "HTTP/1.1 401 ");
    }
    assert_int_equal(fixture.handled, 0);
    int fd = connect_by_tcp();
    snprintf(peer, sizeof peer, "\"uid\":%u,\"pid\":0", (unsigned)getuid());
    ask(fd, "GET /echo HTTP/1.1\r\n" HOST BEARER "\r\n", 200, peer);
    ask(fd, "GET /echo HTTP/1.1\r\n" HOST "authorization: bearer " TOKEN "\r\n\r\n", 200, NULL);
    send_text(fd, GET_ECHO); /* shown once is not shown for good */
    expect_refused(fd, "HTTP/1.1 401 ", "the next without");
    assert_int_equal(fixture.handled, 2);
    /* Over the Unix socket the kernel's word counts, with any token. */
    fd = connect_raw();
    ask(fd, "GET /echo HTTP/1.1\r\n" HOST "Authorization: Bearer nonsense\r\n\r\n", 200, NULL);
}

/* The server's own page may call it: by TCP, where it shows the token. */
TEST_BETWEEN(test_own_pages, start_with_tcp, remove_fixture)
{
    CLEANUP(free_ptr)
    char *own = xasprintf("Host: %s\r\nOrigin: http://%s\r\n", fixture.tcp_address, fixture.tcp_address);
    static const char *const bad[] = {"http://localhost:1",
                                      "https://localhost",
                                      "http://localhost.evil.example",
                                      "localhost",
                                      "null",
                                      "http://localhost\r\nOrigin: http://localhost"};
    CLEANUP(free_ptr) char *request = xasprintf("POST /echo HTTP/1.1\r\n%sContent-Length: 0\r\n" BEARER "\r\n", own);
    CLEANUP(free_ptr) char *unshown = xasprintf("POST /echo HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n", own);
    int fd = connect_by_tcp();

    ask(fd, request, 200, NULL);
    send_text(fd, unshown);
    expect_refused(fd, "HTTP/1.1 401 ", "without the token");
    for (size_t i = 0; i < array_size(bad); i++) {
        CLEANUP(free_ptr)
        char *other =
            xasprintf("POST /echo HTTP/1.1\r\n" HOST "Origin: %s\r\nContent-Length: 0\r\n" BEARER "\r\n", bad[i]);

        refused(connect_by_tcp(), other, "HTTP/1.1 403 ");
    }
}

/* The whole answer to this request by TCP, which comes with such a status, until the next one. */
static const char *file_answer(const char *request, const char *status)
{
    static char text[1024];
    int fd = connect_by_tcp();

    memset(text, 0, sizeof text);
    send_text(fd, request);
    assert_true(recv(fd, text, sizeof text - 1, MSG_WAITALL) > 0);
    if (strncmp(text, status, strlen(status)) != 0)
        fail_msg("%s: %s", request, text);
    close(fd);
    return text;
}

TEST_BETWEEN(test_files, start_with_tcp, remove_fixture)
{
    static const char *const known[] = {FIXTURE_ETAG, "\"1\", W/" FIXTURE_ETAG, "W/" FIXTURE_ETAG};

    fixture.options.is_public = fixture_is_public;
    restart();
    const char *text = file_answer("GET /file HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "HTTP/1.1 200 ");
    if (!strstr(text, "ETag: " FIXTURE_ETAG "\r\n") || !strstr(text, "X-Such: so\r\n") ||
        !strstr(text, "\r\n\r\n" FIXTURE_FILE) || !strstr(text, "Cache-Control: no-cache\r\n"))
        fail_msg("%s", text);
    for (size_t i = 0; i < array_size(known); i++) {
        CLEANUP(free_ptr)
        char *request =
            xasprintf("GET /file HTTP/1.1\r\n" HOST "Connection: close\r\nIf-None-Match: %s\r\n\r\n", known[i]);

        assert_null(strstr(file_answer(request, "HTTP/1.1 304 "), FIXTURE_FILE));
    }
    file_answer("GET /file HTTP/1.1\r\n" HOST "Connection: close\r\nIf-None-Match: \"9\"\r\n\r\n", "HTTP/1.1 200 ");
    file_answer("POST /file HTTP/1.1\r\n" HOST "Content-Length: 00\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 ");
    /* A body would have to be kept until it is there; and nothing else is public. */
    refused(connect_by_tcp(), "POST /file HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n", "HTTP/1.1 401 ");
    refused(connect_by_tcp(), GET_ECHO, "HTTP/1.1 401 ");
}

TEST_BETWEEN(test_nothing_listens_on_tcp_unless_asked, start_with_tcp, remove_fixture)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct address tcp;

    assert_int_equal(address_parse(fixture.tcp_address, &tcp), 0);
    fixture.options.tcp_address = NULL;
    restart();
    assert_int_equal(connect(fd, (struct sockaddr *)&tcp.socket, tcp.length), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

/* The token that a client over TCP shows acts for its file's owner, so nobody else may have it. */
TEST_BETWEEN(test_token_files, start_with_tcp, remove_fixture)
{
    static const struct {
        const char *text;
        size_t length;
        int mode, code;
        const char *says;
    } cases[] = {
        {TOKEN, 32, 0600, 0, NULL},
        {TOKEN "\n", 33, 0400, 0, NULL},
        {TOKEN, 32, 0644, -EPERM, "chmod 600"},
        {TOKEN, 32, 0640, -EPERM, "chmod 600"},
        {TOKEN, 32, 0620, -EPERM, "chmod 600"},
        {TOKEN, 32, 0601, -EPERM, "chmod 600"},
        {TOKEN, 31, 0600, -EINVAL, "32 to 512 characters"},
        {"", 0, 0600, -EINVAL, "32 to 512 characters"},
        {TOKEN "\nmore", 37, 0600, -EINVAL, "more than one line"},
        {"0123456789abcdef\0hijklmnopqrstuv", 32, 0600, -EINVAL, "byte 17"},
        {"0123456789abcdef hijklmnopqrstuv", 32, 0600, -EINVAL, "byte 17"},
    };
    CLEANUP(free_ptr) char *link = xasprintf("%s/link", fixture.directory);
    CLEANUP(free_ptr) char *large = xmalloc(TOKEN_MAX + 2);
    struct token token;

    http_fixture_stop(&fixture);
    for (size_t i = 0; i < array_size(cases); i++) {
        unlink(fixture.token_path);
        write_file(fixture.token_path, cases[i].text, cases[i].length, cases[i].mode);
        trouble.text[0] = '\0';
        if (token_read(fixture.token_path, &token, &trouble) != cases[i].code ||
            (cases[i].says && (!strstr(trouble.text, cases[i].says) || !strstr(trouble.text, fixture.token_path))))
            fail_msg("case %zu: %s", i, trouble.text);
        if (!cases[i].code) {
            assert_int_equal(token.owner, getuid());
            assert_true(token_matches(&token, TOKEN));
            assert_false(token_matches(&token, ""));
            continue;
        }
        assert_true(http_server_new(&(struct http_options){.loop = &fixture.loop,
                                                           .socket_path = fixture.path,
                                                           .tcp_address = fixture.tcp_address,
                                                           .token_file = fixture.token_path},
                                    &fixture.server, &trouble) == cases[i].code);
    }
    memset(large, 't', TOKEN_MAX + 1);
    for (size_t length = TOKEN_MAX; length <= TOKEN_MAX + 1; length++) {
        unlink(fixture.token_path);
        write_file(fixture.token_path, large, length, 0600);
        assert_int_equal(token_read(fixture.token_path, &token, &trouble), length > TOKEN_MAX ? -EINVAL : 0);
    }
    assert_int_equal(symlink(fixture.token_path, link), 0);
    assert_int_equal(token_read(link, &token, &trouble), -ELOOP);
    unlink(link);
    assert_int_equal(token_read(fixture.directory, &token, &trouble), -EINVAL);
}

/* How much comes until the server closes. */
static size_t drain(int fd)
{
    CLEANUP(free_ptr) char *block = xmalloc(1 << 16);
    size_t total = 0;
    ssize_t count;

    while ((count = recv(fd, block, 1 << 16, 0)) > 0)
        total += (size_t)count;
    return total;
}

static bool is_cut(int fd)
{
    struct pollfd hung_up = {.fd = fd};

    return poll(&hung_up, 1, 0) == 1;
}

/* A byte now and then keeps a connection lively, and yet it is not waited for longer than the limit. */
TEST_BETWEEN(test_trickling_clients, start_with_tcp, remove_fixture)
{
    static const char *const beginnings[] = {
        "GET /echo HTTP/1.1\r\n" HOST "X: ", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10000\r\n\r\n", ""};
    int fds[3], slow, closed = 0;
    char some[64];

    fixture.options.transfer_limit_s = 1;
    restart();
    for (size_t i = 0; i < 3; i++) {
        fds[i] = connect_raw();
        send_text(fds[i], beginnings[i]);
    }
    slow = connect_raw(); /* takes its answer in small bites */
    send_text(slow, GET("/big?bytes=8000000"));
    for (int round = 0; round < 200 && (closed < 3 || !is_cut(slow)); round++) {
        usleep(50000);
        recv(slow, some, sizeof some, 0);
        for (int i = 0; i < 3; i++)
            if (fds[i] >= 0 && send(fds[i], "G", 1, MSG_NOSIGNAL) < 0) {
                close(fds[i]);
                fds[i] = -1;
                closed++;
            }
    }
    assert_int_equal(closed, 3);
    assert_true(is_cut(slow));
    assert_true(drain(slow) < 7000000);
    close(slow);
    fds[0] = connect_raw();
    ask(fds[0], GET_ECHO, 200, NULL);
}

/* All places are taken: a client with fewer than the others gets one of theirs, one with as many is turned away. */
TEST_BETWEEN(test_places_are_shared, start_with_tcp, remove_fixture)
{
    static const char request[] = "GET /echo HTTP/1.1\r\n" HOST BEARER "\r\n";
    int fds[4], others[3];

    fixture.options.max_connections = 4;
    restart();
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_raw();
        ask(fds[i], GET_ECHO, 200, NULL);
    }
    for (int i = 0; i < 2; i++) {
        others[i] = connect_by_tcp();
        ask(others[i], request, 200, NULL);
        expect_closed(fds[i]);
    }
    others[2] = connect_by_tcp();
    expect(others[2], 503, "too many clients");
    expect_closed(others[2]);
    for (int i = 0; i < 2; i++) {
        ask(fds[2 + i], GET_ECHO, 200, NULL);
        close(fds[2 + i]);
        close(others[i]);
    }
}

/* Many requests of one do not hold up the other's by more than one; nor one that connects meanwhile. */
TEST_BETWEEN(test_turns, start_with_tcp, remove_fixture)
{
    static const char by_tcp[] = "GET /echo HTTP/1.1\r\n" HOST BEARER "\r\n";
    enum { MANY = 60 };
    int first = connect_raw(), fds[MANY], other = connect_by_tcp(), late;

    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_raw();
        ask(fds[i], GET_ECHO, 200, NULL);
    }
    ask(other, by_tcp, 200, NULL);
    fixture.handled = 0;
    send_text(first, GET("/gate"));
    while (!fixture.handled)
        usleep(1000);
    for (int i = 0; i < MANY; i++)
        send_text(fds[i], GET("/nap"));
    send_text(other, by_tcp);
    fixture.gate_open = true;
    expect(other, 200, NULL);
    if (fixture.handled > MANY / 2)
        fail_msg("%d requests were handled before another's one", fixture.handled);
    late = connect_by_tcp();
    ask(late, by_tcp, 200, NULL);
    if (fixture.handled > MANY)
        fail_msg("all requests were handled before one of another who came late");
    expect(first, 200, NULL);
    for (int i = 0; i < MANY; i++) {
        expect(fds[i], 200, NULL);
        close(fds[i]);
    }
}

TEST(test_addresses)
{
    static const char *const good[] = {"127.0.0.1:1", "127.9.9.9:8471", "[::1]:65535"};
    static const char *const wide[] = {"0.0.0.0:80", "10.0.0.1:8471", "[::]:8471", "[fe80::1]:1"};
    static const char *const bad[] = {
        "",      "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",   "127.0.0.1:65536", "localhost:80", "::1:80",
        "[::1]", "[::1]80",   ":80",        "127.0.0.1:80x", "1.2.3:80",        "127.0.0.1:-1", "127.0.0.1: 80"};
    struct address address;

    for (size_t i = 0; i < array_size(good); i++)
        assert_true(address_parse(good[i], &address) == 0 && address_is_loopback(&address));
    for (size_t i = 0; i < array_size(wide); i++)
        assert_true(address_parse(wide[i], &address) == 0 && !address_is_loopback(&address));
    for (size_t i = 0; i < array_size(bad); i++)
        if (address_parse(bad[i], &address) != -EINVAL)
            fail_msg("%s: taken", bad[i]);
}

TEST(test_preferences)
{
    static const struct {
        const char *header;
        int wish; /* for gzip */
    } rows[] = {
        {NULL, -1},
        {"", -1},
        {"gzip", 1000},
        {"br, GZip;q=0.5", 500},
        {"gzip;q=0", 0},
        {"gzip; q=0.0", 0},
        {"gzip; Q=0", 0},
        {"x-gzip", -1},
        {"gzip2,deflate", -1},
        {"gzip;q=x", 1000},
        {",,gzip", 1000},
        {"gzip;q=0.1234567", 123},
        {"gzip;q=0.2,gzip;q=0.7", 700},
        {"deflate;q=0.5,gzip;v=1;q=0.25 ", 250},
        {"gzip;q=", 1000},
        {"gzip ;q=1.000", 1000},
        {"*", -1},
    };

    for (size_t i = 0; i < array_size(rows); i++)
        if (http_preference(rows[i].header, "gzip") != rows[i].wish)
            fail_msg("%s: %d", rows[i].header, http_preference(rows[i].header, "gzip"));
}
