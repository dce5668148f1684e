/* Those who tell: each message to its user, and to the administrator's hooks, is told by a process of its own, a few at
 * a time, and none for longer than a few minutes. So what one user has written into his file, or a hook that hangs,
 * holds up nobody else. */
#ifndef CARMA_NOTIFY_CREW_H
#define CARMA_NOTIFY_CREW_H

#include <jansson.h>
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

struct crew;

/* `hooks`: the directory, borrowed; NULL: none. `say` gets lines for the log, safe to print. */
struct crew *crew_new(const char *hooks, void (*say)(const char *format, ...));
void crew_free(struct crew *crew); /* ends those who still tell */

/* Each has a copy of the message. */
void crew_tell_user(struct crew *crew, uid_t uid, const json_t *message);
void crew_run_hooks(struct crew *crew, const json_t *message);

#define CREW_MOST 16

/* The descriptors to wait for, CREW_MOST at most; their number. And what there is to do when one is ready, or a second
 * has passed. */
size_t crew_poll(const struct crew *crew, struct pollfd *ready);
void crew_turn(struct crew *crew);

#endif
