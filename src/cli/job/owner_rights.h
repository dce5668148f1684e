/* The rights of a job's user, for one thread of root's: with these root opens what that user has named. They are those
 * for files alone (setfsuid(2), and the thread's groups). To signals, and to a user's own file systems (FUSE without
 * allow_other), the process stays root's, so that he cannot hold it up. */
#ifndef CARMA_CLI_JOB_OWNER_RIGHTS_H
#define CARMA_CLI_JOB_OWNER_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct owner_rights {
    bool taken;
    gid_t *groups; /* owned: those to go back to */
    int group_count;
};

/* Until they are given back, for the calling thread. Nothing changes where the caller is not root, or root is the
 * owner. A negative errno: the thread has its own rights. */
int owner_rights_take(int64_t owner, struct owner_rights *rights, struct error *err);

void owner_rights_give_back(struct owner_rights *rights);

#endif
