/* The first process of the sandbox: sets it up, starts the command and waits for it. With its end the kernel kills all
 * that is left inside. */
#ifndef CARMA_SANDBOX_INSIDE_H
#define CARMA_SANDBOX_INSIDE_H

#include <stdbool.h>

#include "sandbox/request.h"
#include "sandbox/rights.h"

/* It reports by messages on its socket. Once everything is set up comes REPORT_READY, with the two descriptors of
 * struct tree_ends. Then comes one of the others, with a line of text behind the letter. */
#define REPORT_READY   'r'
#define REPORT_ENDED   'e' /* the command, with status 0 */
#define REPORT_EXITED  'x' /* the command, with another one */
#define REPORT_FAILED  'f' /* the command, in another way */
#define REPORT_MISSING 'm' /* a part of the sandbox cannot be had */

struct inside {
    const struct sandbox_request *request;
    const struct account *account;
    bool own_users;  /* in a user namespace from the beginning, where the caller is not root */
    int users;       /* the one that it enters last, where the caller is root (users.h) */
    bool watched;    /* no control group counts */
    bool pinned;     /* nor divides CPU time */
    int64_t threads; /* without a sandbox: that the user has already and that count for his limit of processes, too */
    int report;      /* its end of the socket; a byte comes there from the parent first */
    int result;      /* descriptor 3 of the command */
    int complaints;  /* its standard error */
};

void inside_run(const struct inside *inside) __attribute__((noreturn));

#endif
