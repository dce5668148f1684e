/* Notices to the service manager: that the daemon is ready, its work (the line `Status:` of systemctl status), that its
 * loop turns, that it stops. Nothing of this where no service manager listens. */
#ifndef CARMA_DAEMON_ANNOUNCE_H
#define CARMA_DAEMON_ANNOUNCE_H

#include "daemon/daemon.h"

struct announcer;

/* Before daemon_start, which can take a while. */
void announce_loading(const struct daemon *daemon);

/* The daemon listens, and the stored state is loaded: says so, and from now on reports its work. */
struct announcer *announce_ready(struct daemon *daemon);

/* Says that the daemon stops. The memory goes as the loop is run again. NULL is as good as none. */
void announce_stopping(struct announcer *announcer);

#endif
