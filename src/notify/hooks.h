/* The administrator's programs in /etc/carma/hooks.d: each gets every event as JSON. */
#ifndef CARMA_NOTIFY_HOOKS_H
#define CARMA_NOTIFY_HOOKS_H

#include <stdbool.h>

#include <jansson.h>

bool hooks_any(const char *directory); /* whether something is there */

/* In a process of its own: runs them one after the other, in the order of their names; failures are lines on `log`. */
void hooks_run(const char *directory, const json_t *message, int log);

#endif
