/* Processes that SIGKILL waits for: they hang in the kernel, as in a file system that never answers. */
#ifndef CARMA_LAUNCH_HANGING_H
#define CARMA_LAUNCH_HANGING_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process was killed and hangs in the kernel with all its threads, and has no GPU open. It runs no
 * instruction of a program any more, and what it will do when the kernel lets go of it is end. */
bool process_only_hangs(pid_t pid);

#endif
