/* Talking to a daemon that may be restarted meanwhile. */
#ifndef CARMA_CLI_SESSION_H
#define CARMA_CLI_SESSION_H

#include "cli/cli.h"

#define SESSION_TIMEOUT_S 30 /* wall time for which a missing daemon is waited for */

/* As cli_call; but a request is repeated where there is no daemon, or where it cannot store anything now. This goes on
 * for up to SESSION_TIMEOUT_S, and is said once. A request without an answer is repeated too, where that does no harm:
 * a GET, and one that has a request_id. Anything else then gives -CLI_NO_ANSWER: whether it was done is for the caller
 * to find out. */
int session_call(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
                 struct error *err);

/* POST /v1/jobs of a request with a request_id. It is repeated like that only while there is no daemon, or no answer of
 * it: an answer is reported at once. -CLI_NO_ANSWER: whether it was submitted is not known. */
int session_submit(struct cli *cli, const json_t *request, json_t **reply, struct error *err);

/* The exit status of a command that gives jobs' exit statuses, for an error of these calls. */
int session_status(int rc);

/* Sleeps on the wall clock; false where a signal ended it early. */
bool session_sleep_ms(int64_t wall_ms);

#endif
