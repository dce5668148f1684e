/* The shepherd's process. One waits for the next job: it is executed and linked, and its directory is made, before the
 * job comes. The directory is then renamed to that of the launch. */
#ifndef CARMA_LAUNCH_SPAWN_SHEPHERD_H
#define CARMA_LAUNCH_SPAWN_SHEPHERD_H

#include "launch/launch.h"

#define SPAWN_NO_MPS "no-mps" /* an empty directory in the run directory */

/* Gives the request and the run directory, which must not exist, to a shepherd. 0 or a negative errno. */
int spawn_shepherd(const char *program, const char *run_directory, int request_fd, struct launch_begun *begun,
                   struct error *err);

/* Makes a shepherd wait, unless one does: in RUNS/next. It ends with this process, however that ends. 0 or a negative
 * errno. */
int spawn_prepare(const char *program, const char *runs, struct error *err);

/* The pid of the one that waits; 0: none does. */
pid_t spawn_waiting(void);

/* Ends the one that waits, and removes its directory. */
void spawn_unprepare(void);

/* The shepherd's side: waits at the socket `fd` for the request, and returns a descriptor of it. -EPIPE: the daemon has
 * ended without a job for it. */
int spawn_await(int fd);

/* Then: whether the job shall run, once the daemon has said so. */
bool spawn_await_go(int fd);

#endif
