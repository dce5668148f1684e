/* The user database's entries for uids. A directory service may take seconds to answer: it is asked on libuv's pool,
 * never on the loop. Of a job it is asked once, as the job is submitted (daemon/submit/submission.h). */
#ifndef CARMA_DAEMON_VIEW_OWNERS_H
#define CARMA_DAEMON_VIEW_OWNERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "api/submission_text.h"
#include "base/error.h"

struct owners;

/* Waits for the answer: not for the loop. An error: the database could not be asked. */
int owner_look_up(uid_t uid, struct owner *owner, struct error *err);

struct owners *owners_new(uv_loop_t *loop);
void owners_free(struct owners *owners); /* run the loop until a lookup under way has ended */

/* Whether the user has an entry, looked up within the last ten minutes: *owner is then the caller's. */
bool owners_find(const struct owners *owners, uid_t uid, struct owner *owner);

/* Keeps the result of a submission's own lookup. */
void owners_keep(struct owners *owners, uid_t uid, const struct owner *found);

/* `answer` is called once the entry has been looked up, or could not be: owners_name has it then. */
void owners_ask(struct owners *owners, uid_t uid, void (*answer)(bool stopping, void *user), void *user);

/* The user's name; its number while it is not known, which has it looked up. Valid until the next call. */
const char *owners_name(struct owners *owners, uid_t uid);

#endif
