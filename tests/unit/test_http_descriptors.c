/* Clients that send descriptors along: to close one may take as long as its sender likes, and holds up nobody. */
#include <dlfcn.h>
#include <sys/syscall.h>

#include "base/kernel/calls.h"
#include "http_raw.h"

#define LINGER_S 30

static bool kernel_refuses;

/* The server's: without it, the kernel is one that passes descriptors on. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    return level == SOL_SOCKET && name == PASS_RIGHTS && !kernel_refuses
               ? 0
               : (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

/* A socket whose last close waits, as its peer does not read what it has sent. */
static int lingering(int *peer)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char block[65536];

    assert_int_equal(bind(listening, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
    *peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    while (send(fd, block, sizeof block, MSG_DONTWAIT) > 0)
        ;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(listening);
    return fd;
}

static unsigned spawned;

/* The server's. */
int uv_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
    int (*spawn)(uv_loop_t *, uv_process_t *, const uv_process_options_t *) = dlsym(RTLD_NEXT, "uv_spawn");

    spawned++;
    return spawn(loop, process, options);
}

/* Text with the descriptor; whether the kernel took it. */
static bool send_along(int fd, const char *text, int handed, int flags)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof handed)];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof handed), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = (char *)(uintptr_t)text, .iov_len = strlen(text)};
    const struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

    memcpy(CMSG_DATA(&control.head), &handed, sizeof handed);
    return sendmsg(fd, &message, MSG_NOSIGNAL | flags) >= 0;
}

/* How they come: what goes before them, the text that they are sent with, how, and whether there is an answer first. */
static const struct {
    const char *before, *with;
    int flags;
    bool answered;
} ways[] = {
    {"", "G", 0, false},
    {"GET /ec", "ho HTTP/1.1\r\n", 0, false},
    {"GET /ec", "h", MSG_OOB, false},
    {GET_ECHO, "G", 0, true},
    {GET("/never"), "G", 0, false},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", "d", 0, false},
    {"GET / HTTP/1.1\r\nno header\r\n\r\n", "G", 0, false}, /* refused, and closed with them unread */
};

static int descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(nobody_waits_for_descriptors_of_a_client)
{
    for (int refuses = 0; refuses < 2; refuses++) {
        int before = descriptors();
        kernel_refuses = refuses;
        start();
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            int peer, handed = lingering(&peer), fd = connect_raw(), other;
            if (*ways[i].before)
                send_text(fd, ways[i].before);
            if (ways[i].answered)
                expect(fd, 200, NULL);
            if (!send_along(fd, ways[i].with, handed, ways[i].flags))
                close_fd(&peer); /* nobody else has it: it would linger here */
            close(handed);
            send(fd, "more", 4, MSG_NOSIGNAL); /* which is read past urgent bytes */
            if (i % 2)
                close(fd);
            other = connect_raw();
            ask(other, GET_ECHO, 200, NULL);
            if (i % 2 == 0)
                close(fd);
            ask(other, GET_ECHO, 200, NULL);
            close(other);
            close_fd(&peer);
        }
        http_fixture_stop(&fixture);
        assert_in_range(descriptors(), before, before + 4); /* libuv's pipe, and what came last */
    }
}

/* Each child costs the loop the time of its beginning. */
TEST(many_have_a_child_together)
{
    int64_t begin_ns = nodetime_monotonic_wall_ns(), took_ms;
    int ends[2], before = descriptors();

    kernel_refuses = false;
    start();
    spawned = 0;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 60; i++) {
        int fd = connect_raw();
        assert_true(send_along(fd, "G", *ends, 0));
        close(fd);
        usleep(5000);
    }
    close(ends[0]);
    close(ends[1]);
    http_fixture_stop(&fixture);
    took_ms = (nodetime_monotonic_wall_ns() - begin_ns) / NS_PER_MS;
    assert_in_range(spawned, 1, 2 + took_ms / 100);
    assert_in_range(descriptors(), before, before + 4);
}

/* Of those that come together while it is busy, and are turned away. */
TEST(nor_for_those_of_one_that_is_turned_away)
{
    int peers[3], fds[3], idle, busy;

    kernel_refuses = false;
    fixture.options.max_connections_per_uid = 2;
    start();
    idle = connect_raw();
    ask(idle, GET_ECHO, 200, NULL);
    busy = connect_raw();
    send_text(busy, GET("/gate"));
    for (int i = 0; i < 3; i++) {
        CLEANUP(close_fd) int handed = lingering(&peers[i]);
        fds[i] = connect_raw();
        assert_true(send_along(fds[i], "G", handed, 0));
    }
    fixture.gate_open = true;
    expect(busy, 200, NULL);
    for (int i = 0; i < 3; i++) {
        expect(fds[i], 503, NULL);
        close(peers[i]);
        close(fds[i]);
    }
    close(busy);
    close(idle);
    http_fixture_stop(&fixture);
}

/* Of those that nobody has taken up when the server ends. */
TEST(nor_at_the_end)
{
    int64_t begin_ns = nodetime_monotonic_wall_ns();
    int peer, handed = lingering(&peer), fd;
    struct http_server *server;
    uv_loop_t loop;

    uv_loop_init(&loop);
    fixture.options.loop = &loop;
    fail_if(http_server_new(&fixture.options, &server, &trouble), trouble);
    fd = connect_raw();
    assert_true(send_along(fd, "G", handed, 0));
    close(handed);
    http_server_free(server);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_true(nodetime_monotonic_wall_ns() - begin_ns < LINGER_S * NS_PER_SEC / 2);
    close(fd);
    close(peer);
}

static int setup(void **state)
{
    return http_fixture_prepare(&fixture);
}

RUN_TESTS(setup, remove_fixture)
