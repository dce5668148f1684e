/* The user of the connected process: other users of the machine can reach a port of 127.0.0.1, too. */
#ifndef CARMA_DASHBOARD_PEER_H
#define CARMA_DASHBOARD_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

/* Whether the other end of a TCP connection within this machine is a socket of that user or of root. The kernel says it
 * when it is asked (sock_diag(7)), or, where it cannot be, its tables in /proc/net. No: nobody is known to have it.
 */
bool dashboard_peer_is_of(const struct sockaddr_in *peer, const struct sockaddr_in *own, uid_t uid);

/* ---- The two ways, for tests ---- */

/* 1 yes, 0 no, negative: the kernel does not say. */
int dashboard_peer_ask(const struct sockaddr_in *peer, const struct sockaddr_in *own, uid_t uid);

/* `table` is the text of /proc/net/tcp or tcp6. */
bool dashboard_peer_look_up(const char *table, const struct sockaddr_in *peer, const struct sockaddr_in *own,
                            uid_t uid);

#endif
