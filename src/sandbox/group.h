/* The control group of one run, below one that its caller may divide. */
#ifndef CARMA_SANDBOX_GROUP_H
#define CARMA_SANDBOX_GROUP_H

#include <stdbool.h>

#include "sandbox/request.h"

struct group {
    char *path;        /* owned; NULL: there is none */
    int fd;            /* its directory; -1 */
    bool counts;       /* memory and processes are limited by it; else somebody has to watch them */
    bool divides_cpus; /* CPU time is limited by it */
};

/* Without a parent in the request, or where none can be made, there is none. */
void group_make(const struct sandbox_request *request, struct group *group);

/* For a process that was not made in it; where it may not be moved, the group is removed. */
void group_enter(struct group *group, pid_t pid);

/* Whether a process was killed there because memory ran out, or was not made because there were too many. */
bool group_ran_out_of_memory(const struct group *group);
bool group_ran_out_of_processes(const struct group *group);

void group_remove(struct group *group);

#endif
