/* The HTTP server as raw sockets see it: pieces, sizes, many at once, slow, rude and gone clients, and its own end. */

#include "http_raw.h"

#define BODY_LIMIT 100000
#define MANY       100

static size_t limit_of(const char *method, const char *path)
{
    return strcmp(method, "POST") == 0 && strcmp(path, "/nap") == 0 ? 10 : BODY_LIMIT;
}

static int setup(void **state)
{
    if (http_fixture_prepare(&fixture))
        return -1;
    fixture.options.body_limit_bytes = BODY_LIMIT;
    fixture.options.body_limit = limit_of;
    start();
    return 0;
}

/* Tries until the server has noticed that others have gone; returns the connection. */
static int connect_until_ok(const char *request)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    int fd = -1, status = 0;

    for (int i = 0; i < 500 && status != 200; i++) {
        if (fd >= 0) {
            close(fd);
            usleep(10000);
        }
        fd = connect_raw();
        send(fd, request, strlen(request), MSG_NOSIGNAL); /* one turned away may be closed already */
        status = read_answer(fd, &answer);
    }
    assert_int_equal(status, 200);
    return fd;
}

TEST_BETWEEN(test_pieces, setup, remove_fixture)
{
    static const char request[] =
        "POST /echo?state=all HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n{\"a\": \"b\xc3\xa9\"} ";
    char uid[32];
    int fd = connect_raw();

    for (size_t i = 0; i < sizeof request - 1; i++) {
        assert_int_equal(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
        if (i % 16 == 0)
            usleep(1000);
    }
    snprintf(uid, sizeof uid, "\"uid\":%u,\"pid\":%d", (unsigned)getuid(), (int)getpid());
    expect(fd, 200, uid);
    ask(fd, request, 200, "\"state\":\"all\"");
    ask(fd, request, 200, "\"length\":13");
    ask(fd, request, 200, "\"body\":\"{\\\"a\\\": \\\"b\xc3\xa9\\\"} \"");
    ask(fd, request, 200, "Content-Type: application/json");
    ask(fd, GET("/echo?state"), 200, "\"state\":\"\"");
    ask(fd, GET_ECHO, 200, "\"state\":null");
}

/* Two requests in one write, and one that is answered later, on one connection. */
TEST_BETWEEN(test_keep_alive_and_later, setup, remove_fixture)
{
    int fd = connect_raw();

    ask(fd, GET_ECHO GET("/later") GET_ECHO, 200, "\"/echo\"");
    expect(fd, 200, "\"/later\"");
    expect(fd, 200, "\"/echo\"");
    ask(fd, "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200, NULL);
    expect_closed(fd);
}

TEST_BETWEEN(test_errors, setup, remove_fixture)
{
    int fd = connect_raw();

    ask(fd, GET("/what"), 404, "{\"error\":\"/what: no such thing\"}");
    ask(fd, "GET /a%ff%1b%22 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "{\"error\":\"/a??\\\": no such thing\"}");
    close(fd);
    refused(connect_raw(), "complete nonsense\r\n\r\n", "HTTP/1.1 ");
    refused(connect_raw(), "GET /echo HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "); /* no Host */
    refused(connect_raw(), "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 ");
    fd = connect_raw();
    ask(fd, "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 411,
        "Content-Length");
    expect_closed(fd);
    assert_int_equal(fixture.handled, 2);
}

TEST_BETWEEN(test_sizes, setup, remove_fixture)
{
    CLEANUP(strbuf_release) struct strbuf request = {0};
    CLEANUP(free_ptr) char *body = xmalloc(BODY_LIMIT + 1);
    int fd = connect_raw();

    memset(body, 'x', BODY_LIMIT);
    body[BODY_LIMIT] = '\0';
    strbuf_printf(&request, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", BODY_LIMIT, body);
    ask(fd, request.text, 200, "\"length\":100000");
    strbuf_clear(&request);
    strbuf_printf(&request, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", BODY_LIMIT + 1);
    ask(fd, request.text, 413, "at most 100000 bytes");
    expect_closed(fd);
    ask(connect_raw(), "POST /nap HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n", 413, "at most 10 bytes");
    refused(connect_raw(),
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
            "HTTP/1.1 413 ");
    fd = connect_raw();
    strbuf_clear(&request);
    strbuf_printf(&request, "GET /echo HTTP/1.1\r\nHost: localhost\r\nX-Big: %.*s", HTTP_HEADER_LIMIT_BYTES, body);
    send(fd, request.text, request.length, MSG_NOSIGNAL);
    expect_refused(fd, "HTTP/1.1 431 ", "a large head");
    assert_int_equal(fixture.handled, 1);
}

/* A user that does not take his answers is given no more of them, and all of them once he does. */
TEST_BETWEEN(test_untaken_answers, setup, remove_fixture)
{
    struct pollfd fds[8];
    int most = HTTP_UNTAKEN_PER_UID / 9000000 + 1;

    for (size_t i = 0; i < array_size(fds); i++) {
        fds[i] = (struct pollfd){.fd = connect_raw(), .events = POLLIN};
        send(fds[i].fd, GET("/big?bytes=9000000"), strlen(GET("/big?bytes=9000000")), MSG_NOSIGNAL);
        if ((int)i < most)
            assert_int_equal(poll(&fds[i], 1, 60000), 1);
    }
    assert_int_equal(poll(fds + most, array_size(fds) - (size_t)most, 100), 0);
    assert_int_equal(fixture.handled, most);
    for (size_t i = 0; i < array_size(fds); i++) {
        CLEANUP(strbuf_release) struct strbuf answer = {0};
        assert_int_equal(read_answer(fds[i].fd, &answer), 200);
        assert_true(answer.length > 9000000);
        close(fds[i].fd);
    }
}

/* The bodies that one uid has under way are bounded together; one that is given up counts no more. */
TEST_BETWEEN(test_bodies_of_one_uid, setup, remove_fixture)
{
    static const char request[] = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
                                  "Expect: 100-continue\r\n\r\n";
    char interim[64] = "";
    int fds[HTTP_BODIES_PER_UID], fd;

    for (int i = 0; i < HTTP_BODIES_PER_UID; i++) {
        fds[i] = connect_raw();
        send_text(fds[i], request);
        assert_true(recv(fds[i], interim, sizeof interim - 1, 0) > 0);
        assert_non_null(strstr(interim, "100 Continue"));
    }
    fd = connect_raw();
    ask(fd, request, 503, "too many large requests");
    expect_closed(fd);
    for (int i = 0; i < HTTP_BODIES_PER_UID; i++)
        close(fds[i]);
    close(connect_until_ok("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"));
}

TEST_BETWEEN(test_many_at_once, setup, remove_fixture)
{
    int fds[MANY];

    for (int i = 0; i < MANY; i++)
        send_text(fds[i] = connect_raw(), i % 2 ? GET_ECHO : GET("/later"));
    for (int i = MANY; i-- > 0;) {
        expect(fds[i], 200, i % 2 ? "\"/echo\"" : "\"/later\"");
        close(fds[i]);
    }
    assert_int_equal(fixture.handled, MANY);
}

TEST_BETWEEN(test_caps, setup, remove_fixture)
{
    int fds[3], fd;

    fixture.options.max_connections_per_uid = 3;
    restart();
    for (int i = 0; i < 3; i++) {
        fds[i] = connect_raw();
        ask(fds[i], GET_ECHO, 200, NULL);
    }
    fd = connect_raw();
    expect(fd, 503, "you have too many connections open");
    expect_closed(fd);
    close(fds[0]);
    fds[0] = connect_until_ok(GET_ECHO);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

/* A fast caller is served once nobody else waits; of many, those that cannot be parked are closed. One is slow here. */
TEST_BETWEEN(test_too_fast, setup, remove_fixture)
{
    enum { CALLERS = HTTP_MAX_PARKED_PER_UID + 10 };
    int gate, fds[CALLERS], answered = 0;
    CLEANUP(strbuf_release) struct strbuf answer = {0};

    fixture.options.connects_per_s = 1;
    restart();
    for (int i = 0; i < 20; i++) {
        fds[i] = connect_raw();
        ask(fds[i], GET_ECHO, 200, NULL);
        close(fds[i]);
    }
    gate = connect_raw();
    send_text(gate, GET("/gate"));
    while (fixture.handled < 21)
        usleep(1000);
    for (int i = 0; i < CALLERS; i++) {
        fds[i] = connect_raw();
        send_text(fds[i], GET_ECHO);
    }
    fixture.gate_open = true;
    expect(gate, 200, NULL);
    for (int i = 0; i < CALLERS; i++) {
        answered += read_answer(fds[i], &answer) == 200;
        close(fds[i]);
    }
    close(gate);
    assert_in_range(answered, HTTP_MAX_PARKED_PER_UID, HTTP_MAX_PARKED_PER_UID + 2);
}

/* Half a request, an unread answer of 8 MB, and nothing at all. */
static void connect_slow(int *silent, int *half, int *unread)
{
    *silent = connect_raw();
    *half = connect_raw();
    *unread = connect_raw();
    send_text(*half, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
    send_text(*unread, GET("/big?bytes=8000000"));
}

/* Others do not notice them (their time-out is longer than our patience) ... */
TEST_BETWEEN(test_slow_clients, setup, remove_fixture)
{
    int silent, half, unread;

    connect_slow(&silent, &half, &unread);
    int fd = connect_raw();
    for (int i = 0; i < 50; i++) {
        ask(fd, GET_ECHO, 200, NULL);
    }
    ask(half, "\"a\": 123}", 200, "\"length\":10");
    expect(unread, 200, NULL);
}

/* ... and they are let go. */
TEST_BETWEEN(test_idle_clients, setup, remove_fixture)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    int silent, half, unread;

    fixture.options.idle_timeout_s = 1;
    restart();
    connect_slow(&silent, &half, &unread);
    expect_closed(silent);
    expect_closed(half);
    struct pollfd closed = (struct pollfd){.fd = unread};
    assert_int_equal(poll(&closed, 1, 20000), 1); /* the server hangs up, read or not */
    assert_int_equal(read_answer(unread, &answer), 0);
    assert_true(answer.length < 8000000);
}

TEST_BETWEEN(test_client_gone, setup, remove_fixture)
{
    int fd;

    for (int i = 0; i < 10; i++) {
        fd = connect_raw();
        send_text(fd, GET("/later"));
        while (fixture.handled <= i)
            usleep(1000);
        close(fd);
    }
    usleep(60000);
    fd = connect_raw();
    ask(fd, GET_ECHO, 200, NULL);
}

TEST_BETWEEN(test_stop_with_pending, setup, remove_fixture)
{
    int waiting = connect_raw(), idle = connect_raw(), gone = connect_raw();

    send_text(waiting, GET("/never"));
    send_text(gone, GET("/never"));
    ask(idle, GET_ECHO, 200, NULL);
    while (fixture.pending_count < 2)
        usleep(1000);
    assert_false(http_has_gone(fixture.pending[0]) || http_has_gone(fixture.pending[1]));
    close(gone);
    assert_int_equal(http_has_gone(fixture.pending[0]) + http_has_gone(fixture.pending[1]), 1);
    http_fixture_stop(&fixture);
    expect(waiting, 503, "stopping");
    expect_closed(waiting);
    expect_closed(idle);
    assert_int_equal(access(fixture.path, F_OK), -1);
}

static void assert_cannot_listen(const char *path, int code, const char *says)
{
    struct http_options options = {.loop = NULL, .socket_path = path, .handle = fixture_handle};
    struct http_server *server = NULL;
    struct error err = {{0}};

    assert_int_equal(http_server_new(&options, &server, &err), code);
    assert_null(server);
    assert_null(strchr(err.text, '\n'));
    if (!strstr(err.text, says) || !strstr(err.text, path))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

TEST_BETWEEN(test_socket_file, setup, remove_fixture)
{
    struct stat st;
    char path[256];
    FILE *file;
    int status;

    assert_int_equal(stat(fixture.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, geteuid() == 0 ? 0666 : 0600);
    assert_cannot_listen(fixture.path, -EADDRINUSE, "another server listens");
    /* A server that died leaves its file, which the next one replaces. */
    http_fixture_stop(&fixture);
    pid_t child = fork();
    if (!child) {
        struct sockaddr_un address = unix_address(fixture.path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        _exit(bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(fixture.path, F_OK), 0);
    restart();
    http_fixture_stop(&fixture);
    file = fopen(fixture.path, "w");
    assert_non_null(file);
    fclose(file);
    assert_cannot_listen(fixture.path, -EEXIST, "not a socket");
    assert_int_equal(access(fixture.path, F_OK), 0);
    memset(path, 'p', sizeof path);
    memcpy(path, "/tmp/", 5);
    path[150] = '\0';
    assert_cannot_listen(path, -ENAMETOOLONG, "choose a shorter one");
}

/* Another server has taken the place of a removed file: stopping must not take it away. */
TEST_BETWEEN(test_stop_leaves_others_file, setup, remove_fixture)
{
    FILE *file;

    assert_int_equal(unlink(fixture.path), 0);
    file = fopen(fixture.path, "w");
    assert_non_null(file);
    fclose(file);
    http_fixture_stop(&fixture);
    assert_int_equal(access(fixture.path, F_OK), 0);
}

/* No descriptors left: the server pauses, neither spinning nor dying, and goes on when there are some. */
TEST_BETWEEN(test_out_of_descriptors, setup, remove_fixture)
{
    struct rlimit before;
    struct timespec start, end;
    int fd = connect_raw(), waiting;

    ask(fd, GET_ECHO, 200, NULL);
    waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit now = before;
    now.rlim_cur = (rlim_t)waiting + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    struct sockaddr_un address = unix_address(fixture.path);
    assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof address), 0);
    send_text(waiting, GET_ECHO);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    usleep(750000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_true((end.tv_sec - start.tv_sec) * NS_PER_SEC + end.tv_nsec - start.tv_nsec < 100 * NS_PER_MS);
    ask(fd, GET_ECHO, 200, NULL);
    assert_int_equal(fixture.handled, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect(waiting, 200, NULL);
}
