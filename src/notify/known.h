/* What has happened to jobs and has not been told: each event of a job once. An event has a moment, and those up to the
 * `floor` count as told: the floor is kept in a file, and follows the time, so that little has to be remembered. */
#ifndef CARMA_NOTIFY_KNOWN_H
#define CARMA_NOTIFY_KNOWN_H

#include <jansson.h>
#include <stdint.h>

#include "api/told/notify.h"

struct known;

/* `path` has the floor of the last run; NULL, or no such file: what has happened by now counts as told. */
struct known *known_new(const char *path);
void known_free(struct known *known); /* and keeps the floor */

/* Calls `tell` for each event that this form of a job, of the daemon at its time now_ns, shows for the first time. */
typedef void known_tell(void *user, const json_t *job, enum notify_event event);
void known_take(struct known *known, const json_t *job, int64_t now_ns, known_tell *tell, void *user);

/* The same for the events that come by the time alone; all that happened until now_ns was taken. */
void known_pass(struct known *known, int64_t now_ns, known_tell *tell, void *user);

#endif
