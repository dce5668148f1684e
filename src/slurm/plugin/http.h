/* One HTTP request over carmad's Unix socket, with a deadline for all of it. Each has a connection of its own: a step
 * asks three times in its life. */
#ifndef CARMA_SLURM_PLUGIN_HTTP_H
#define CARMA_SLURM_PLUGIN_HTTP_H

#include <stdint.h>

#include "slurm/plugin/text.h"

#define HTTP_LIMIT_BYTES (256 << 10) /* of an answer */

int64_t http_now_ms(void); /* monotonic */

/* 0: there was an answer; its status, and its body in *answer, which is empty where there was none. A negative errno
 * otherwise: -ECONNREFUSED and -ENOENT where nobody listens, -ETIMEDOUT at `deadline_ms`, -EPROTO for an answer that is
 * not HTTP, -EMSGSIZE for one that is too long. `body` may be NULL. */
int http_ask(const char *socket_path, const char *method, const char *path, const struct text *body,
             int64_t deadline_ms, int *status, struct text *answer);

/* The same in two parts. http_send(): a descriptor that http_hear() waits for the answer on, and closes; or a negative
 * errno. */
int http_send(const char *socket_path, const char *method, const char *path, const struct text *body,
              int64_t deadline_ms);
int http_hear(int fd, int64_t deadline_ms, int *status, struct text *answer);

/* Takes an answer apart: 0 and the body's place, or -EPROTO; -EAGAIN while it is not complete. */
int http_read_answer(const char *bytes, size_t length, int *status, const char **body, size_t *body_length);

#endif
