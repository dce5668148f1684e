#include "base/net/tcp_peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

#define TABLE_LIMIT (64 << 20)

/* An address's words in the order of the network, 1 or 4 of them; its port likewise. */
static size_t words_of(const struct sockaddr_storage *end, uint32_t words[static 4], uint16_t *port)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)end;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)end;

    if (end->ss_family == AF_INET) {
        words[0] = v4->sin_addr.s_addr;
        *port = v4->sin_port;
        return 1;
    }
    memcpy(words, &v6->sin6_addr, sizeof v6->sin6_addr);
    *port = v6->sin6_port;
    return 4;
}

static void unmap(struct sockaddr_storage *end)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    memcpy(&v6, end, sizeof v6);
    if (end->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
        return;
    v4.sin_port = v6.sin6_port;
    memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof v4.sin_addr);
    *end = (struct sockaddr_storage){0};
    memcpy(end, &v4, sizeof v4);
}

bool tcp_peer_is_near(int fd, struct sockaddr_storage *peer, struct sockaddr_storage *own)
{
    uint32_t there[4] = {0}, here[4] = {0};
    socklen_t peer_length = sizeof *peer, own_length = sizeof *own;
    size_t count;
    uint16_t port;

    *peer = *own = (struct sockaddr_storage){0};
    if (getpeername(fd, (struct sockaddr *)peer, &peer_length) < 0 ||
        getsockname(fd, (struct sockaddr *)own, &own_length) < 0)
        return false;
    unmap(peer);
    unmap(own);
    count = words_of(peer, there, &port);
    words_of(own, here, &port);
    /* Whoever connects to an address of this machine comes from the same one, but from 127.0.0.1 to all of 127/8. */
    return memcmp(there, here, sizeof here) == 0 || (count == 1 && ntohl(*there) >> 24 == IN_LOOPBACKNET);
}

/* A socket without an inode belongs to no process, and is shown as root's. */
static int owner_of(unsigned long socket_uid, unsigned long inode, uid_t *uid)
{
    *uid = (uid_t)socket_uid;
    return inode ? 0 : -ENOENT;
}

int tcp_peer_ask(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, uid_t *uid)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 wanted;
    } request = {
        .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .wanted = {.sdiag_family = (uint8_t)peer->ss_family,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_states = UINT32_MAX,
                   .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    CLEANUP(close_fd) int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    union {
        struct nlmsghdr header;
        char bytes[8192];
    } answer;
    const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
    ssize_t length;

    words_of(peer, request.wanted.id.idiag_src, &request.wanted.id.idiag_sport);
    words_of(own, request.wanted.id.idiag_dst, &request.wanted.id.idiag_dport);
    if (fd < 0 || send(fd, &request, sizeof request, 0) != sizeof request)
        return -errno;
    length = recv(fd, &answer, sizeof answer, MSG_DONTWAIT); /* it is there once it has been asked for */
    if (length < (ssize_t)NLMSG_LENGTH(sizeof *found) || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return -ENOENT;
    return owner_of(found->idiag_uid, found->idiag_inode, uid);
}

/* As the tables write an end: its words as the processor reads them. */
static void print_end(char *text, size_t size, const char *prefix, const struct sockaddr_storage *end)
{
    uint32_t words[4];
    uint16_t port;
    size_t count = words_of(end, words, &port);
    int used = snprintf(text, size, " %s", prefix);

    for (size_t i = 0; i < count; i++)
        used += snprintf(text + used, size - (size_t)used, "%08X", words[i]);
    snprintf(text + used, size - (size_t)used, ":%04X", ntohs(port));
}

int tcp_peer_look_up(const char *table, const struct sockaddr_storage *peer, const struct sockaddr_storage *own,
                     uid_t *uid)
{
    /* An IPv4 address stands in the table of IPv6 where a program uses that family for it. */
    static const char *const prefixes[] = {"", "0000000000000000FFFF0000"};
    unsigned long socket_uid, inode;
    char first[64], second[64];

    for (size_t i = 0; i < (peer->ss_family == AF_INET ? array_size(prefixes) : 1); i++) {
        CLEANUP(free_ptr) char *wanted = NULL;
        const char *line;
        print_end(first, sizeof first, prefixes[i], peer);
        print_end(second, sizeof second, prefixes[i], own);
        wanted = xasprintf("%s%s ", first, second);
        line = strstr(table, wanted);
        if (line && sscanf(line + strlen(wanted), "%*s %*s %*s %*s %lu %*u %lu", &socket_uid, &inode) == 2)
            return owner_of(socket_uid, inode, uid);
    }
    return -ENOENT;
}

int tcp_peer_owner(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, uid_t *uid)
{
    static const char *const tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    int rc = tcp_peer_ask(peer, own, uid), said = -ENOSYS;

    for (size_t i = 0; i < array_size(tables) && rc; i++) {
        CLEANUP(free_ptr) char *table = NULL;
        size_t length;

        if (file_read(tables[i], TABLE_LIMIT, &table, &length, NULL) == 0)
            rc = said = tcp_peer_look_up(table, peer, own, uid);
    }
    return rc ? said : 0;
}
