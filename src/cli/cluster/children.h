/* Programs that run side by side, each for a limited time, with limited output. A view of many nodes waits for none of
 * them longer than for its time-out. By poll(2): libuv would lengthen each start of the daily commands. */
#ifndef CARMA_CLI_CLUSTER_CHILDREN_H
#define CARMA_CLI_CLUSTER_CHILDREN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"

#define CHILD_OUT_LIMIT    ((size_t)8 << 20) /* a node's thousands of jobs; carma does not answer more */
#define CHILD_ERRORS_LIMIT ((size_t)4 << 10)
#define CHILDREN_AT_ONCE   128

enum child_end { CHILD_ENDED, CHILD_LATE, CHILD_TALKS_TOO_MUCH, CHILD_NOT_STARTED };

struct child {
    const char *const *argv; /* borrowed; argv[0] is looked for in PATH */
    struct strbuf out;       /* its standard output; owned, as the next */
    struct strbuf errors;    /* the first CHILD_ERRORS_LIMIT bytes of its standard error */
    enum child_end end;
    int status; /* of CHILD_ENDED: as wait(2) has it; of CHILD_NOT_STARTED: errno */

    /* children.c's own. */
    pid_t pid; /* 0: it does not run */
    int fds[2];
    int64_t deadline_ns;
};

/* Runs them all, CHILDREN_AT_ONCE at a time; a child that goes on after its time_ms of wall time, or says more than
 * CHILD_OUT_LIMIT, is killed. */
void children_run(struct child *children, size_t count, int64_t time_ms);

void child_release(struct child *child);

#endif
