/* Long work on the state, as it is at this moment, beside the loop: a copy of the process (fork) does it. The kernel
 * copies a page only where one of the two writes to it. */
#ifndef CARMA_DAEMON_ENGINE_COPIED_H
#define CARMA_DAEMON_ENGINE_COPIED_H

#include <uv.h>

#include "base/error.h"

struct copied;

/* `work` writes its result to `fd`, a file of nobody else's, and says 0. It has memory and that file, and no other
 * thread, descriptor or signal; it ends with the daemon. `ended` is called on the loop, unless it was freed before:
 * true, and the file from its beginning (valid until copied_free), or false. NULL: there can be no copy. */
struct copied *copied_begin(uv_loop_t *loop, int (*work)(int fd, void *user),
                            void (*ended)(bool whole, int fd, void *user), void *user);

/* Kills it where it still works. */
void copied_free(struct copied *copied);

#endif
