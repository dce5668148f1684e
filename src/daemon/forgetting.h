/* Forgets ended jobs, the oldest of the user with the most first: from memory, and their run directories. Some at a
 * time, with the loop's other work in between; the directories on libuv's pool. */
#ifndef CARMA_DAEMON_FORGETTING_H
#define CARMA_DAEMON_FORGETTING_H

#include "daemon/daemon.h"

struct forgetting *forgetting_new(struct daemon *daemon);
void forgetting_free(struct forgetting *forgetting); /* ends as the loop is run again */

/* Those that ended before before_ns, and those beyond SNAPSHOTTER_MOST_ENDED; once the store has them all. While it is
 * at work, nothing more is begun. */
void forgetting_begin(struct forgetting *forgetting, int64_t before_ns);

#endif
