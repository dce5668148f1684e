/* A daemon and its service manager, systemd or another program with the same protocols (sd_notify(3),
 * sd_listen_fds(3)): sockets that it hands over, and notices to it. Where nobody manages the daemon there is nothing to
 * take, and telling does nothing. */
#ifndef CARMA_BASE_SERVICE_H
#define CARMA_BASE_SERVICE_H

#include <stdint.h>

#include "base/error.h"

#define SERVICE_FIRST_SOCKET 3 /* they are numbered from here on */
#define SERVICE_MAX_SOCKETS  4

struct service {
    char *notify_address; /* owned; a path, or @NAME for an abstract socket; NULL: nobody wants to be told */
    int64_t watchdog_ns;  /* wall time within which the manager wants to hear WATCHDOG=1; 0: it does not watch */
    unsigned sockets;     /* handed over, now closed on execution; their kind is not checked */
};

/* The environment's offers to this very process, which must not have threads yet. The variables are removed, so that no
 * child takes them for its own. -EINVAL, -E2BIG, -EBADF: the offer cannot be taken. Release *service in any case. */
int service_take(struct service *service, struct error *err);
void service_release(struct service *service); /* leaves the sockets alone */

/* Sends lines NAME=VALUE in one message, without waiting: -EAGAIN where the manager is behind with its reading. 0 or a
 * negative errno. */
int service_tell(const struct service *service, const char *lines);

#endif
