/* Descriptors that go from one process of carma to another with some bytes, by a Unix socket (SCM_RIGHTS). */
#ifndef CARMA_BASE_KERNEL_HANDED_H
#define CARMA_BASE_KERNEL_HANDED_H

#include <sys/types.h>

#define HANDED_MOST 2

/* The descriptors stay the caller's. 0, or a negative errno. */
int handed_send(int socket, const void *bytes, size_t length, const int *fds, size_t count, int flags);

/* As recvmsg(2). The descriptors that came are the caller's, closed at exec(); -1 in the place of each that did not.
 * The kernel lets go of those beyond `count`. */
ssize_t handed_receive(int socket, void *bytes, size_t room, int *fds, size_t count, int flags);

#endif
