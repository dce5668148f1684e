/* The owner of the other end of a connection, by the kernel's word and by its tables. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/net/tcp_peer.h"

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

static struct sockaddr_storage end_of(uint16_t port)
{
    struct sockaddr_storage end = {.ss_family = AF_INET};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&end;

    v4->sin_port = htons(port);
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return end;
}

static int owner(const char *table, uint16_t port)
{
    struct sockaddr_storage peer = end_of(port), own = end_of(0x2117);
    uid_t uid;

    return tcp_peer_look_up(table, &peer, &own, &uid) == 0 ? (int)uid : -1;
}

TEST(test_table)
{
    static const struct {
        const char *table;
        uint16_t port;
        int uid;
    } rows[] = {
        {tcp, 0xc001, UID}, {tcp, 0xc002, UID + 1}, {tcp, 0xc003, 0},        {tcp, 0xc004, -1}, /* nobody's any more */
        {tcp, 0xc005, -1},                                                                      /* to another port */
        {tcp, 0xc006, -1},                                                                      /* our own end of it */
        {tcp, 0xc007, -1},                                                                      /* cut off */
        {tcp, 0x2117, -1},  {tcp6, 0xc008, UID},    {tcp6, 0xc009, UID + 1}, {"", 0xc001, -1},
    };

    if (htonl(1) == 1)
        skip();
    for (size_t i = 0; i < array_size(rows); i++)
        assert_int_equal(owner(rows[i].table, rows[i].port), rows[i].uid);
}

/* A connection of this process, with another user's rights where root can do that: IPv4, IPv4 within IPv6, IPv6. */
static const struct way {
    int client, server;
    const char *table;
} ways[] = {
    {AF_INET, AF_INET, "/proc/self/net/tcp"},
    {AF_INET6, AF_INET, "/proc/self/net/tcp6"},
    {AF_INET6, AF_INET6, "/proc/self/net/tcp6"},
};

static int listen_on(int family, struct sockaddr_storage *own)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t length = sizeof *own;
    int listener = socket(family, SOCK_STREAM, 0);

    *own = end_of(0);
    if (family == AF_INET6)
        memcpy(own, &v6, sizeof v6);
    if (bind(listener, (struct sockaddr *)own, sizeof *own) != 0 || listen(listener, 1) != 0) {
        close(listener);
        return -1; /* no IPv6 here */
    }
    assert_int_equal(getsockname(listener, (struct sockaddr *)own, &length), 0);
    return listener;
}

static int connect_to_end(const struct way *way, const struct sockaddr_storage *own, uid_t uid)
{
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = ((const struct sockaddr_in *)own)->sin_port};
    bool maps = way->client != way->server;

    memcpy(mapped.sin6_addr.s6_addr, (const char[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, 127, 0, 0, 1}, 16);
    assert_int_equal(seteuid(uid), 0);
    int fd = socket(way->client, SOCK_STREAM, 0);
    assert_int_equal(seteuid(getuid()), 0);
    assert_int_equal(connect(fd, maps ? (const struct sockaddr *)&mapped : (const struct sockaddr *)own,
                             maps ? sizeof mapped : sizeof *own),
                     0);
    return fd;
}

static void check_way(const struct way *way)
{
    uid_t uid = getuid() == 0 ? UID : getuid(), found = 0;
    struct sockaddr_storage peer = {0}, own;
    socklen_t size = sizeof peer;
    int listener = listen_on(way->server, &own), client, server, known;

    if (listener < 0)
        return;
    client = connect_to_end(way, &own, uid);
    if (way->client == way->server) { /* seen from the one who connects: nobody has accepted it */
        assert_int_equal(getsockname(client, (struct sockaddr *)&peer, &size), 0);
        assert_int_equal(tcp_peer_owner(&own, &peer, &found), -ENOENT);
    }
    size = sizeof peer;
    server = accept(listener, (struct sockaddr *)&peer, &size);
    if (way->client == way->server) {
        assert_int_equal(tcp_peer_owner(&own, &peer, &found), 0);
        assert_int_equal(found, getuid());
    }
    CLEANUP(free_ptr) char *table = file_text(way->table);
    assert_int_equal(tcp_peer_look_up(table, &peer, &own, &found), 0);
    assert_int_equal(found, uid);
    assert_int_equal(tcp_peer_owner(&peer, &own, &found), 0);
    assert_int_equal(found, uid);
    known = tcp_peer_ask(&peer, &own, &found);
    assert_true(known < 0 || found == uid);
    close(client);
    assert_int_equal(tcp_peer_owner(&peer, &own, &found), -ENOENT); /* nobody's any more */
    close(server);
    close(listener);
}

TEST(test_real_ones)
{
    for (size_t i = 0; i < array_size(ways); i++)
        check_way(&ways[i]);
}
