/* The users' shares of the GPUs. The core has them, by records; the setting `shares` goes before what an administrator
 * has given by request. Groups are those of the settings alone. */
#ifndef CARMA_DAEMON_SHARES_H
#define CARMA_DAEMON_SHARES_H

#include <stdint.h>

#include "daemon/daemon.h"

/* The share that the user has; and the one that the setting gives him, 0: it does not name him. */
uint32_t shares_of(const struct daemon *daemon, uint32_t uid);
uint32_t shares_set(const struct daemon *daemon, uint32_t uid, const char *user);

/* The record that gives the user the share, in his group. */
struct record shares_given(const struct daemon *daemon, uint32_t uid, const char *user, uint32_t share);

/* The user's next job is about to be submitted: tells the core of a share, and a group, that the settings give him. */
void shares_tell(struct daemon *daemon, uint32_t uid, const char *user);

/* The same of all users that are known, once all is loaded. */
void shares_tell_all(struct daemon *daemon);

#endif
