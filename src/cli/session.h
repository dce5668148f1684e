/* Talking to a daemon that may be restarted meanwhile. */
#ifndef CARMA_CLI_SESSION_H
#define CARMA_CLI_SESSION_H

#include "cli/cli.h"

#define SESSION_PATIENCE_S 30 /* wall time for which a missing daemon is waited for */

/* As cli_call, but what could not be asked because there is no daemon is asked again for up to SESSION_PATIENCE_S,
 * saying so once. A GET is also asked again when its answer did not come; anything else then gives -CLI_NO_ANSWER:
 * whether it was done is for the caller to find out. */
int session_call(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
                 struct error *err);

/* Sleeps on the wall clock; false where a signal ended it early. */
bool session_sleep_ms(int64_t wall_ms);

#endif
