/* Where a user is told things: by his own file (api/told/notify_file.h), by his own rights. */
#ifndef CARMA_NOTIFY_TARGET_H
#define CARMA_NOTIFY_TARGET_H

#include <jansson.h>
#include <sys/types.h>

/* In a process of its own. Root becomes the user before it touches anything of his. Failures are told as lines on
 * `log`, and in notify.log beside the user's file; those of a target that does not answer after it was tried again. */
void target_tell(uid_t uid, const json_t *message, int log);

#endif
