/* A user namespace of root's own, in which the command runs, so that nobody enters the sandbox from outside.
 *
 * What a process has open is reached from outside by /proc/PID/root, cwd, fd, exe and map_files, by ptrace(2),
 * pidfd_getfd(2), process_vm_readv(2) and setns(2). For all of these, equal users are not enough where the user
 * namespaces differ: the kernel asks for CAP_SYS_PTRACE in the other one (cap_ptrace_access_check in
 * security/commoncap.c), which the parent namespace's processes of its creator alone have. A descriptor does not come
 * out either: no socket is shared with anybody outside.
 *
 * All ids are the same in it. The command enters last: everything is set up without the limits of such a namespace.
 * Where the caller is not root, the namespace is the user's, and he can enter. */
#ifndef CARMA_SANDBOX_USERS_H
#define CARMA_SANDBOX_USERS_H

#include "base/error.h"

/* As root. A descriptor for the caller to close, or a negative errno. */
int users_make(void);

/* The caller has all rights in the namespace then, and none outside. */
int users_enter(int users, struct error *err);

#endif
