/* The owner of a connection to the dashboard, by the kernel's word and by its tables. */
#include "unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/file.h"
#include "dashboard/peer.h"

#define UID 12001

/* As a machine of little-endian words shows them, like those that carma is built for. */
static const char tcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:2117 00000000:0000 0A 00000000:00000000 00:00000000 00000000 12001        0 51 1 0 100 0 0 10 0\n"
    "   1: 0100007F:C001 0100007F:2117 01 00000000:00000000 00:00000000 00000000 12001        0 52 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:C002 0100007F:2117 01 00000000:00000000 00:00000000 00000000 12002        0 53 1 0 20 4 30 10 -1\n"
    "   3: 0100007F:C003 0100007F:2117 01 00000000:00000000 00:00000000 00000000     0        0 54 1 0 20 4 30 10 -1\n"
    "   4: 0100007F:C004 0100007F:2117 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n"
    "   5: 0100007F:2117 0100007F:C006 01 00000000:00000000 00:00000000 00000000 12001        0 55 1 0 20 4 30 10 -1\n"
    "   6: 0100007F:C005 0100007F:2118 01 00000000:00000000 00:00000000 00000000 12001        0 56 1 0 20 4 30 10 -1\n"
    "   7: 0100007F:C007 0100007F:2117 01 0000";
static const char tcp6[] =
    "  sl  local_address                         remote_address                        st tx_queue ...\n"
    "   0: 0000000000000000FFFF00000100007F:C008 0000000000000000FFFF00000100007F:2117 01 00000000:00000000 "
    "00:00000000 "
    "00000000 12001        0 57 1 0 20 4 30 10 -1\n"
    "   1: 0000000000000000FFFF00000100007F:C009 0000000000000000FFFF00000100007F:2117 01 00000000:00000000 "
    "00:00000000 "
    "00000000 12002        0 58 1 0 20 4 30 10 -1\n";

static bool is_of(const char *table, uint16_t port)
{
    struct sockaddr_in peer = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = peer;

    own.sin_port = htons(0x2117);
    return dashboard_peer_look_up(table, &peer, &own, UID);
}

TEST(test_own)
{
    if (htonl(1) == 1)
        skip();
    assert_true(is_of(tcp, 0xc001));
    assert_true(is_of(tcp, 0xc003)); /* root can do anything anyway */
    assert_true(is_of(tcp6, 0xc008));
}

TEST(test_others)
{
    assert_false(is_of(tcp, 0xc002));
    assert_false(is_of(tcp, 0xc004)); /* nobody's any more */
    assert_false(is_of(tcp, 0xc005)); /* to another port */
    assert_false(is_of(tcp, 0xc006)); /* our own end of it */
    assert_false(is_of(tcp, 0xc007)); /* cut off */
    assert_false(is_of(tcp, 0x2117));
    assert_false(is_of(tcp6, 0xc009));
    assert_false(is_of("", 0xc001));
}

/* A connection of this process, made with another user's rights where root can do that; its two ends. */
static void connect_as(uid_t uid, int family, struct sockaddr_in *peer, struct sockaddr_in *own, int fds[static 2])
{
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    socklen_t length = sizeof *own;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    *own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)own, sizeof *own), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)own, &length), 0);
    assert_int_equal(seteuid(uid), 0);
    fds[0] = socket(family, SOCK_STREAM, 0);
    assert_int_equal(seteuid(getuid()), 0);
    assert_true(fds[0] >= 0);
    mapped.sin6_port = own->sin_port;
    memcpy(mapped.sin6_addr.s6_addr, (const char[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, 127, 0, 0, 1}, 16);
    if (family == AF_INET)
        assert_int_equal(connect(fds[0], (struct sockaddr *)own, sizeof *own), 0);
    else
        assert_int_equal(connect(fds[0], (struct sockaddr *)&mapped, sizeof mapped), 0);
    length = sizeof *peer;
    fds[1] = accept(listener, (struct sockaddr *)peer, &length);
    assert_true(fds[1] >= 0);
    close(listener);
}

static void check_way(int family)
{
    bool root = getuid() == 0;
    uid_t uid = root ? UID : getuid();
    CLEANUP(free_ptr) char *table = NULL;
    struct sockaddr_in peer, own;
    size_t length;
    int fds[2], known;

    connect_as(uid, family, &peer, &own, fds);
    assert_int_equal(
        file_read(family == AF_INET ? "/proc/self/net/tcp" : "/proc/self/net/tcp6", 64 << 20, &table, &length, NULL),
        0);
    assert_true(dashboard_peer_look_up(table, &peer, &own, uid));
    assert_false(dashboard_peer_look_up(table, &peer, &own, uid + 1));
    assert_true(dashboard_peer_is_of(&peer, &own, uid));
    assert_false(dashboard_peer_is_of(&peer, &own, uid + 1));
    known = dashboard_peer_ask(&peer, &own, uid);
    assert_true(known == 1 || known < 0);
    known = dashboard_peer_ask(&peer, &own, uid + 1);
    assert_true(known == 0 || known < 0);
    close(fds[0]);
    assert_false(dashboard_peer_is_of(&peer, &own, uid)); /* nobody's any more */
    close(fds[1]);
}

TEST(test_real_ones)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    check_way(AF_INET);
    if (fd >= 0)
        check_way(AF_INET6);
    close(fd);
}

RUN_TESTS(NULL, NULL)
