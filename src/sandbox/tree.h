/* The file tree that the command sees. It is built from an empty root:
 *   - /proc, /dev and its shared memory, /sys, /run, /tmp and /var/tmp are new, and what is written there is thrown
 * away
 *   - of these, only those entries of /run, /tmp and /var/tmp are there that the job names
 *   - every other directory of the root is an overlay that can only be read, as far as the user may (layer.h). So are
 *     the file systems that are mounted below it. (Mounts that are only read-only would still connect to sockets.)
 *   - the job's directory, its home and directories that it names have a throw-away layer where the user may write
 *
 * Data is not looked for in the job's texts: a script names it by a path of its own, and its user may read it anyway.
 */
#ifndef CARMA_SANDBOX_TREE_H
#define CARMA_SANDBOX_TREE_H

#include <stdbool.h>

#include "base/error.h"
#include "sandbox/request.h"
#include "sandbox/rights.h"

struct tree_ends {
    int proc;    /* the new /proc */
    int scratch; /* in the file system that takes all that is written */
};

/* In a mount namespace of its own. The new tree becomes the root; the old one is gone. The ends are descriptors for the
 * caller to close. `own_users`: whether this is in a user namespace. */
int tree_build(const struct sandbox_request *request, const struct account *account, bool own_users,
               struct tree_ends *ends, struct error *err);

#endif
