/* The shepherd's process. A shepherd that waits for its request is there before the next job: executing and linking a
 * program is then over when the job comes. */
#ifndef CARMA_LAUNCH_SPAWN_SHEPHERD_H
#define CARMA_LAUNCH_SPAWN_SHEPHERD_H

#include <sys/types.h>

/* Gives the request to the shepherd that waits, else to a new one. 0 or an errno. */
int spawn_shepherd(const char *program, int request_fd, const char *log, pid_t *pid);

/* Sees to it that a shepherd waits; its pid, 0: none could be started, which a job's start would tell. It ends with this
 * process, however that ends. */
pid_t spawn_prepare(const char *program);

/* Ends the one that waits. */
void spawn_unprepare(void);

/* The shepherd's side: of the socket in descriptor `fd` makes the request, and of standard error its log. It is over
 * (-EPIPE) where the daemon has ended without a job for it. */
int spawn_await(int fd);

#endif
