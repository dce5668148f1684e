/* The file tree that the command sees. Each file system of the machine stands in it under an overlay: the files are the
 * same, but sockets and FIFOs are new ones, without a listener outside. (A socket on a mount that is only read-only
 * still connects.) */
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
