/* What runs around a job's command, as argv before argv: conda's activation, a container's engine. */
#ifndef CARMA_LAUNCH_SHEPHERD_WRAP_H
#define CARMA_LAUNCH_SHEPHERD_WRAP_H

#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "launch/request.h"

#define WRAP_REPORT_FD 9 /* one digit: every shell can redirect to it; the shepherd uses fewer */

/* The command to execute, NULL-terminated, the caller's; the request's arguments where nothing is around them. `own`:
 * carma's variables. Called in the job's process, as its user, in its directory, with its environment; what the engine
 * cannot use is taken out of that. -ENOENT: there is no engine; one line says what to do. */
int wrap_command(const struct shepherd_request *request, const char *shepherd, const struct strbuf *own,
                 size_t own_count, char ***command, struct error *err);

/* Whether the process is of a container's engine, by its name: it passes no signal on, is no part of the job's work,
 * and ends by itself behind the container. */
bool wrap_is_engine(pid_t pid);

#endif
