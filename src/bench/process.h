/* A process in a session of its own, with its output in files. */
#ifndef CARMA_BENCH_PROCESS_H
#define CARMA_BENCH_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct bench_child {
    pid_t pid;    /* and its session's; 0: none runs */
    int status;   /* as wait(2) has it, once it ended */
    double cpu_s; /* of it and the children that it has waited for, once it ended */
};

/* `out` and `errors` may be the same path; `environment`: "NAME=VALUE" to add, up to a NULL. */
int bench_child_start(struct bench_child *child, const char *const *argv, const char *const *environment,
                      const char *out, const char *errors, struct error *err);

bool bench_child_ended(struct bench_child *child); /* does not wait */

/* Ends the whole session, by SIGTERM, then by SIGKILL; waits for the child. */
void bench_child_end(struct bench_child *child);

#endif
