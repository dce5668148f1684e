/* Processes that SIGKILL waits for: they hang in the kernel, as in a file system that never answers. */
#ifndef CARMA_LAUNCH_HANGING_H
#define CARMA_LAUNCH_HANGING_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process was killed, or is on its way to its end, and hangs in the kernel with all its threads. It runs no
 * instruction of a program any more, but what it has open it may have for long: readings tell whether that is a GPU. */
bool process_only_hangs(pid_t pid);

#endif
