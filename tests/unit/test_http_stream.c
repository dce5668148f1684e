/* Answers that go on: they come as sent, last in silence, end on both sides. Who does not read loses its place. */
#include "http_raw.h"

#define STREAM_BY_TCP "GET /stream HTTP/1.1\r\n" HOST BEARER "\r\n"
#define PATIENCE_MS   15000

/* Each test begins with the limits as they are by default, and no stream. */
AROUND(afresh)
{
    fixture.options.idle_timeout_s = fixture.options.transfer_limit_s = 0;
    fixture.options.max_streams = fixture.options.max_streams_per_uid = 0;
    restart();
}

static void patient(int fd)
{
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

static int ask_for_stream(int fd, const char *request)
{
    patient(fd);
    send_text(fd, request);
    return fd;
}

static int open_stream(void)
{
    int before = fixture.open, fd = ask_for_stream(connect_raw(), GET("/stream"));

    while (fixture.open == before)
        usleep(1000);
    return fd;
}

static void tell(const char *request)
{
    CLEANUP(close_fd) int fd = connect_raw();

    patient(fd);
    ask(fd, request, 200, NULL);
}

static void until_open(int wanted)
{
    int64_t end_ns = nodetime_monotonic_wall_ns() + PATIENCE_MS * NS_PER_MS;

    while (fixture.open != wanted && nodetime_monotonic_wall_ns() < end_ns)
        usleep(1000);
    assert_int_equal(fixture.open, wanted);
}

/* Reads until this many dots have come; false: the stream ended before. `last`: the text read at the end. */
static bool read_dots(int fd, size_t wanted, char last[static 64])
{
    static char bytes[65536];

    last[0] = '\0';
    while (wanted) {
        ssize_t count = recv(fd, bytes, sizeof bytes, 0);

        if (count == 0 || (count < 0 && errno == ECONNRESET))
            return false;
        if (count < 0)
            fail_msg("nothing comes: %s", strerror(errno));
        for (ssize_t i = 0; i < count && wanted; i++)
            wanted -= bytes[i] == '.' && !(i > 0 && bytes[i - 1] == '1'); /* that is in HTTP/1.1 */
        snprintf(last, 64, "%.*s", count < 60 ? (int)count : 60, count < 60 ? bytes : bytes + count - 60);
    }
    return true;
}

static void expect_dots(int fd, size_t wanted)
{
    char last[64];

    if (!read_dots(fd, wanted, last))
        fail_msg("ended before it had all: %s", last);
}

/* The rest of a text, with the chunk that ends it. */
static void expect_end(int fd, const char *rest)
{
    char end[64] = "";
    size_t length = 0;

    while (!strstr(end, "0\r\n\r\n") && length < sizeof end - 1) {
        ssize_t count = recv(fd, end + length, sizeof end - 1 - length, 0);

        if (count <= 0)
            fail_msg("no end: %s", end);
        length += (size_t)count;
    }
    assert_non_null(strstr(end, rest));
}

TEST_BETWEEN(test_comes_as_it_is_sent, afresh, NULL)
{
    int fd = open_stream();
    CLEANUP(strbuf_release) struct strbuf answer = {0};

    tell(GET("/tell?bytes=3"));
    expect_dots(fd, 3);
    tell(GET("/tell?bytes=100000")); /* more than libmicrohttpd holds */
    expect_dots(fd, 100000);
    tell(GET("/tell?bytes=2"));
    tell(GET("/end"));
    expect_end(fd, "2\r\n..\r\n");
    assert_int_equal(fixture.closed, 0); /* that was us */
    send_text(fd, GET("/echo"));         /* the connection is as good as before */
    assert_int_equal(read_answer(fd, &answer), 200);
}

TEST_BETWEEN(test_by_tcp, afresh, NULL)
{
    int fd = ask_for_stream(connect_by_tcp(), STREAM_BY_TCP);

    until_open(1);
    tell(GET("/tell?bytes=7"));
    expect_dots(fd, 7);
    close(fd);
    until_open(0);
}

/* Two connections that say nothing are closed, one after the other; the stream, as silent, is not. */
TEST_BETWEEN(test_lasts_while_nothing_is_said, afresh, NULL)
{
    fixture.options.idle_timeout_s = fixture.options.transfer_limit_s = 1;
    restart();
    int fd = open_stream();
    tell(GET("/tell?bytes=1"));
    expect_dots(fd, 1);
    for (int i = 0; i < 2; i++) {
        int silent = connect_raw();

        patient(silent);
        expect_closed(silent);
    }
    tell(GET("/tell?bytes=1"));
    expect_dots(fd, 1);
}

TEST_BETWEEN(test_who_does_not_read_is_cut_off, afresh, NULL)
{
    fixture.options.transfer_limit_s = 3;
    restart();
    open_stream(); /* and is never read */
    int reads = open_stream();
    tell(GET("/tell?bytes=4000000")); /* more than a socket holds */
    expect_dots(reads, 4000000);
    until_open(1);
    assert_int_equal(fixture.closed, 1);
    tell(GET("/tell?bytes=5"));
    expect_dots(reads, 5);
}

TEST_BETWEEN(test_no_more_is_kept_than_the_limit, afresh, NULL)
{
    char last[64];
    int fd = open_stream();

    tell(GET("/tell?bytes=5000000"));
    assert_int_equal(fixture.open, 1);
    tell(GET("/tell?bytes=5000000"));
    until_open(0);
    assert_int_equal(fixture.closed, 1);
    assert_false(read_dots(fd, 10000000, last));
}

TEST_BETWEEN(test_are_few, afresh, NULL)
{
    int first, second, refused, by_tcp[2];

    fixture.options.max_streams_per_uid = 2;
    fixture.options.max_streams = 3;
    restart();
    first = open_stream();
    second = open_stream();
    refused = ask_for_stream(connect_raw(), GET("/stream"));
    expect(refused, 503, "you have too many streams open");
    for (int i = 0; i < 2; i++) {
        by_tcp[i] = ask_for_stream(connect_by_tcp(), STREAM_BY_TCP);
        if (i == 0)
            until_open(3);
    }
    expect(by_tcp[1], 503, "the daemon has too many streams open");
    close(first); /* nothing need be sent to see that */
    until_open(2);
    send_text(refused, GET("/stream"));
    until_open(3);
    close(second);
    close(refused);
    close(by_tcp[0]);
    close(by_tcp[1]);
    until_open(0);
}

/* A client that has them all gives one up for one that has none, and not one more. */
TEST_BETWEEN(test_one_cannot_have_all, afresh, NULL)
{
    char last[64];
    int own[3], by_tcp[2];

    fixture.options.max_streams_per_uid = fixture.options.max_streams = 3;
    restart();
    for (int i = 0; i < 3; i++)
        own[i] = open_stream();
    for (int i = 0; i < 2; i++) {
        by_tcp[i] = ask_for_stream(connect_by_tcp(), STREAM_BY_TCP);
        if (i == 0)
            assert_false(read_dots(own[0], 1, last)); /* the oldest */
    }
    expect(by_tcp[1], 503, "the daemon has too many streams open");
    until_open(3);
    assert_int_equal(fixture.closed, 1);
    tell(GET("/tell?bytes=4"));
    expect_dots(own[1], 4);
    expect_dots(own[2], 4);
    expect_dots(by_tcp[0], 4);
}

/* A client that leaves in the middle of its data, too. */
TEST_BETWEEN(test_who_leaves_is_missed, afresh, NULL)
{
    int fds[4];

    for (int i = 0; i < 4; i++)
        fds[i] = open_stream();
    tell(GET("/tell?bytes=4000000"));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    until_open(0);
    assert_int_equal(fixture.closed, 4);
}

TEST_BETWEEN(test_ends_with_the_server, afresh, NULL)
{
    int fd = open_stream();

    open_stream();
    tell(GET("/tell?bytes=1000"));
    expect_dots(fd, 1000);
    http_fixture_stop(&fixture);
    assert_int_equal(fixture.closed, 2);
    expect_end(fd, "");
}

RUN_TESTS(start_with_tcp, remove_fixture)
