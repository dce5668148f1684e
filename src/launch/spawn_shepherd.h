/* The shepherd's process. One waits for the next job. Before the job comes, it is executed and linked, its directory is
 * made, and the job's process is forked into its control group. The directory is then renamed to that of the launch.
 */
#ifndef CARMA_LAUNCH_SPAWN_SHEPHERD_H
#define CARMA_LAUNCH_SPAWN_SHEPHERD_H

#include "launch/launch.h"

#define SPAWN_NO_MPS "no-mps" /* an empty directory in the run directory */

/* Gives the request, the program of its device filter (negative: there is none) and the run directory, which must not
 * exist, to a shepherd. 0 or a negative errno. */
int spawn_shepherd(const char *program, const char *run_directory, int request_fd, int filter,
                   struct launch_begun *begun, struct error *err);

/* Makes a shepherd wait, unless one does: in RUNS/next. It ends with this process, however that ends, and the process
 * of its job with it. 0 or a negative errno. */
int spawn_prepare(const char *program, const char *runs, struct error *err);

/* The pid of the one that waits; 0: none does. */
pid_t spawn_waiting(void);

/* Ends the one that waits, and removes its directory. */
void spawn_unprepare(void);

/* Ends a shepherd whose job does not run yet, by closing begun->fd, and reaps it. It leaves nothing; one that has to be
 * killed, as it was stopped, may leave its control group (cgroup_remove_left). */
void spawn_end(struct launch_begun *begun);

/* The shepherd's side: waits at the socket `fd` for the daemon's knowledge of control groups, and tells cgroup.c.
 * -EPIPE: the daemon has ended. */
int spawn_await_place(int fd);

/* Then waits there for the request, and returns a descriptor of it; *filter is negative where none came. The job's
 * process does the same at its socket to the shepherd. -EPIPE: the other side has ended without a job for it. */
int spawn_await(int fd, int *filter);

/* Hands the request's descriptor on, and a filter that is not negative, by the socket `fd`. 0 or a negative errno. */
int spawn_hand(int fd, int request_fd, int filter);

/* Then: whether the job shall run, once the daemon has said so. */
bool spawn_await_go(int fd);

#endif
