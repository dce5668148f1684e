/* Sockets that somebody else listens on before the server does: systemd's socket units. */

#include "http_raw.h"

static char other_path[96];

static int setup(void **state)
{
    if (http_fixture_prepare(&fixture) || http_fixture_add_tcp(&fixture))
        return -1;
    fixture.options.tcp_address = NULL;
    snprintf(other_path, sizeof other_path, "%s/other.sock", fixture.directory);
    return 0;
}

static int teardown(void **state)
{
    http_fixture_stop(&fixture);
    unlink(other_path);
    return http_fixture_remove(&fixture);
}

static int listening_unix(const char *path, int mode)
{
    struct sockaddr_un address = unix_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static int listening_tcp(void)
{
    struct address address;
    const int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(address_parse(fixture.tcp_address, &address), 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    assert_int_equal(bind(fd, (struct sockaddr *)&address.socket, address.length), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* The descriptors as the server gets them, one by one; the originals stay with us, as with a service manager. */
static void hand_over(const int *fds, unsigned count)
{
    int base = 200;

    for (unsigned i = 0; i < count; i++)
        assert_int_equal(dup2(fds[i], base + (int)i), base + (int)i);
    fixture.options.inherited = base;
    fixture.options.inherited_count = count;
}

/* A request sent before there was a server is answered, its sender known. The file and a late request outlive it. */
TEST_BETWEEN(an_inherited_socket_is_served_and_left, setup, teardown)
{
    char who[64];
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    int listening = listening_unix(other_path, 0600), early = connect_to_path(other_path), late;

    snprintf(who, sizeof who, "\"uid\":%u,\"pid\":%d", (unsigned)getuid(), (int)getpid());
    send_text(early, GET_ECHO);
    hand_over(&listening, 1);
    start();
    assert_int_equal(read_answer(early, &answer), 200);
    assert_non_null(strstr(answer.text, who));
    assert_int_equal(access(fixture.path, F_OK), -1); /* the named address is not listened on */
    http_fixture_stop(&fixture);
    assert_int_equal(access(other_path, F_OK), 0);
    late = connect_to_path(other_path);
    send_text(late, GET_ECHO);
    hand_over(&listening, 1);
    start();
    assert_int_equal(read_answer(late, &answer), 200);
    assert_non_null(strstr(answer.text, who));
    close(early);
    close(late);
    close(listening);
}

/* The usual case: the socket unit and the setting name the same path. */
TEST_BETWEEN(the_named_path_may_be_inherited, setup, teardown)
{
    CLEANUP(close_fd) int listening = listening_unix(fixture.path, 0600);

    hand_over(&listening, 1);
    start();
    http_fixture_stop(&fixture);
    assert_int_equal(access(fixture.path, F_OK), 0);
}

/* TCP by inheritance does not replace the Unix socket, and asks for the token. */
TEST_BETWEEN(an_inherited_tcp_socket_asks_for_the_token, setup, teardown)
{
    int listening = listening_tcp(), without, with, local;
    struct http_place place;

    hand_over(&listening, 1);
    start();
    without = connect_by_tcp();
    with = connect_by_tcp();
    local = connect_raw();
    ask(without, GET_ECHO, 401, NULL);
    ask(with, "GET /echo HTTP/1.1\r\n" HOST BEARER "\r\n", 200, NULL);
    ask(local, GET_ECHO, 200, NULL);

    assert_true(http_server_place(fixture.server, 0, &place));
    assert_string_equal(place.name, fixture.tcp_address);
    assert_true(place.tcp && place.inherited && !place.exposed);
    assert_true(http_server_place(fixture.server, 1, &place));
    assert_string_equal(place.name, fixture.path);
    assert_true(!place.tcp && !place.inherited && !place.exposed);
    assert_false(http_server_place(fixture.server, 2, &place));
    close(without);
    close(with);
    close(local);
    close(listening);
}

static void expect_no_server(int code, const char *says)
{
    struct error err = {{0}};

    assert_int_equal(http_fixture_start(&fixture, &err), code);
    assert_null(strchr(err.text, '\n'));
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    for (unsigned i = 0; i < fixture.options.inherited_count; i++)
        assert_int_equal(fcntl(fixture.options.inherited + (int)i, F_GETFD), -1); /* closed */
}

TEST_BETWEEN(what_cannot_be_listened_on_is_refused, setup, teardown)
{
    int made[4];

    made[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    hand_over(made, 1);
    expect_no_server(-ENOTSOCK, "inherited descriptor 200");
    made[1] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    hand_over(made + 1, 1);
    expect_no_server(-EINVAL, "ListenStream=");
    made[2] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    hand_over(made + 2, 1);
    expect_no_server(-EINVAL, "that listens");
    made[3] = listening_tcp();
    fixture.options.token_file = NULL;
    hand_over(made + 3, 1);
    expect_no_server(-EINVAL, "token_file");
    for (int i = 0; i < HTTP_MAX_INHERITED + 1; i++)
        assert_int_equal(dup2(made[3], 200 + i), 200 + i);
    fixture.options.inherited_count = HTTP_MAX_INHERITED + 1;
    expect_no_server(-E2BIG, "at most 4");
    for (int i = 0; i < 4; i++)
        close(made[i]);
}

/* Only root serves others. */
TEST_BETWEEN(a_user_shares_his_socket_with_nobody, setup, teardown)
{
    CLEANUP(close_fd) int listening = listening_unix(other_path, 0666);

    assert_int_equal(chmod(fixture.directory, 0755), 0);
    hand_over(&listening, 1);
    if (geteuid() == 0) {
        start();
        http_fixture_stop(&fixture);
        assert_int_equal(chown(other_path, 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
        hand_over(&listening, 1);
    }
    expect_no_server(-EPERM, "SocketMode=0600");
    assert_int_equal(chmod(other_path, 0600), 0);
    hand_over(&listening, 1);
    start();
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}
