/* Submissions of the page: what a user would type in a terminal, with the dashboard's own environment. */
#ifndef CARMA_DASHBOARD_SUBMIT_H
#define CARMA_DASHBOARD_SUBMIT_H

#include "dashboard/dashboard.h"

#define SUBMIT_BODY_LIMIT_BYTES (2 << 20) /* a script of 1 MiB, and options */

/* Runs `carma submit`. `body` is {"directory": text, "arguments": [text], "script": text or null}: the options, then
 * the command's words; a script is its standard input. The answer is {"status": its exit status, "output", "error":
 * what it printed}; 400 where the body is another, 500 where it cannot be run, 504 after a minute. */
void dashboard_submit(const struct dashboard_place *place, const char *body, size_t length,
                      struct dashboard_answer *answer);

#endif
