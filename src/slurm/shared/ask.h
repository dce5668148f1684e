/* Calls to this node's carmad by whatever of carma's works for Slurm. */
#ifndef CARMA_SLURM_SHARED_ASK_H
#define CARMA_SLURM_SHARED_ASK_H

#include <stdint.h>

#include "client/client.h"

int64_t ask_now_ms(void); /* monotonic */

/* One call, on a connection of its own, which takes `patience_ms` at most. 0, or a negative errno of client_call() or
 * client_check(), and carmad's own sentence. */
int ask(const char *socket, int64_t patience_ms, const char *method, const char *path, const json_t *body,
        json_t **reply, struct error *err);

/* The same again and again until the deadline, while carmad is away, is stopping, or has too many requests: for what
 * does no more when it is asked twice. */
int ask_until(const char *socket, int64_t deadline_ms, const char *method, const char *path, const json_t *body,
              json_t **reply, struct error *err);

#endif
