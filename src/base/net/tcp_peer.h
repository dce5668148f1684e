/* The user who has the other end of a TCP connection within this machine: any user can listen at a port of 127.0.0.1,
 * and any can connect to it. */
#ifndef CARMA_BASE_NET_TCP_PEER_H
#define CARMA_BASE_NET_TCP_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The two ends of a connected socket, `own` that of this process. Whether they are both of this machine: by any of its
 * addresses. An IPv4 address within IPv6 is given as IPv4. */
bool tcp_peer_is_near(int fd, struct sockaddr_storage *peer, struct sockaddr_storage *own);

/* The user whose process has the connection's end `peer`; `own` is this process's end, of the same family. The kernel
 * says it when it is asked (sock_diag(7)), or, where it cannot be, its tables in /proc/net.
 * -ENOENT: no process has it: none has accepted it yet, or it was closed. -ENOSYS: the kernel says nothing here. */
int tcp_peer_owner(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, uid_t *uid);

/* ---- The two ways, for tests ---- */

/* As above; also -ENOENT where the kernel was built without it. */
int tcp_peer_ask(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, uid_t *uid);

/* `table` is the text of /proc/net/tcp or tcp6. 0 or -ENOENT. */
int tcp_peer_look_up(const char *table, const struct sockaddr_storage *peer, const struct sockaddr_storage *own,
                     uid_t *uid);

#endif
