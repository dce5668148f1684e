/* Reads the store when the daemon starts: views, then the core's state; and the new configuration. */
#ifndef CARMA_DAEMON_LOAD_H
#define CARMA_DAEMON_LOAD_H

#include "daemon/daemon.h"

/* Before anything else changes the core. An error names the part that cannot be taken in. */
int load_stored(struct daemon *daemon, struct error *err);

#endif
