/* A user whom an administrator names: one who has had a job, or any by his number. carmad asks no directory service. */
#ifndef CARMA_DAEMON_REQUEST_USER_NAMED_H
#define CARMA_DAEMON_REQUEST_USER_NAMED_H

#include "daemon/daemon.h"

struct user_named {
    const char *name;
    bool found;
    uint32_t uid;
    char *user; /* owned: as he is known */
};

/* What to say where there is none of the name, printf's argument. */
#define USER_UNNAMED "no user '%.60s' has had a job here: name one that has, or say a uid"

bool user_find_named(const struct daemon *daemon, struct user_named *user);

#endif
