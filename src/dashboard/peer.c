#include "dashboard/peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/memory.h"

#define TABLE_LIMIT (64 << 20)

/* A socket without an inode belongs to no process any more, and is shown as root's. */
static bool is_of(unsigned long socket_uid, unsigned long inode, uid_t uid)
{
    return inode != 0 && (socket_uid == uid || socket_uid == 0);
}

int dashboard_peer_ask(const struct sockaddr_in *peer, const struct sockaddr_in *own, uid_t uid)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 wanted;
    } request = {
        .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .wanted = {.sdiag_family = AF_INET,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_states = UINT32_MAX,
                   .id = {.idiag_sport = peer->sin_port,
                          .idiag_dport = own->sin_port,
                          .idiag_src = {peer->sin_addr.s_addr},
                          .idiag_dst = {own->sin_addr.s_addr},
                          .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    CLEANUP(close_fd) int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    union {
        struct nlmsghdr header;
        char bytes[8192];
    } answer;
    const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
    ssize_t length;

    if (fd < 0 || send(fd, &request, sizeof request, 0) != sizeof request)
        return -errno;
    length = recv(fd, &answer, sizeof answer, MSG_DONTWAIT); /* it is there once it has been asked for */
    if (length < (ssize_t)NLMSG_LENGTH(sizeof *found) || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return -ENOENT; /* also where the kernel was built without it */
    return is_of(found->idiag_uid, found->idiag_inode, uid);
}

bool dashboard_peer_look_up(const char *table, const struct sockaddr_in *peer, const struct sockaddr_in *own, uid_t uid)
{
    static const char *const prefixes[] = {"",
                                           "0000000000000000FFFF0000"}; /* of such an address in the table of IPv6 */
    unsigned long socket_uid, inode;

    for (size_t i = 0; i < array_size(prefixes); i++) {
        CLEANUP(free_ptr)
        char *wanted = xasprintf(" %s%08X:%04X %s%08X:%04X ", prefixes[i], peer->sin_addr.s_addr, ntohs(peer->sin_port),
                                 prefixes[i], own->sin_addr.s_addr, ntohs(own->sin_port));
        const char *line = strstr(table, wanted);

        if (line && sscanf(line + strlen(wanted), "%*s %*s %*s %*s %lu %*u %lu", &socket_uid, &inode) == 2)
            return is_of(socket_uid, inode, uid);
    }
    return false;
}

bool dashboard_peer_is_of(const struct sockaddr_in *peer, const struct sockaddr_in *own, uid_t uid)
{
    static const char *const tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    int known = dashboard_peer_ask(peer, own, uid);

    for (size_t i = 0; i < array_size(tables) && known < 0; i++) {
        CLEANUP(free_ptr) char *table = NULL;
        size_t length;

        if (file_read(tables[i], TABLE_LIMIT, &table, &length, NULL) == 0 &&
            dashboard_peer_look_up(table, peer, own, uid))
            return true;
    }
    return known > 0;
}
