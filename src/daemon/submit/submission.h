/* Taking jobs in: all of a request or none. Reading it and estimating its jobs' needs is work for a thread of libuv's
 * pool: a thousand summaries would hold up the loop too long. The result is judged on the loop.
 * A small one without a summary, of a user that was looked up lately, is read on the loop. That is faster than waking a
 * thread.
 *
 * A request is counted before anything is made of it, and then read job by job: a job's JSON becomes many times as
 * large as its text. */
#ifndef CARMA_DAEMON_SUBMIT_SUBMISSION_H
#define CARMA_DAEMON_SUBMIT_SUBMISSION_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "api/spec_limits.h"
#include "daemon/daemon.h"
#include "daemon/view/owners.h"

#define SUBMISSION_MAX_VALUES (512 * SPEC_MAX_JOBS) /* of a request's JSON, and names */

/* Called on the loop. 201: the jobs are inputs of the engine's current turn, or of an earlier one where an accepted
 * submission was repeated (daemon/engine/repeats.h). jobs is then [{"id": n, "estimate": ...}, ...], a reference that
 * is handed over. Else the HTTP status of the refusal: jobs is NULL, err says why, and nothing was changed.
 */
typedef void submission_done(void *user, int status, json_t *jobs, const struct error *err);

/* Body: {"jobs": [spec, ...], "request_id": id (may be left out)}, the caller's until `done`. `done` comes exactly
 * once, at once or in a later turn of the loop. Of one uid's submissions one is worked on at a time, in their order.
 * `judged`: it is judged alone, and nothing is taken in: jobs is an empty list. */
void submission_start(struct daemon *daemon, uid_t uid, const char *body, size_t length, bool judged,
                      submission_done *done, void *user);

/* For others that make a job's wants from its spec: all that it says itself; its memory, by the declared figure, else a
 * recorded or estimated one; whether it may run for so long, which one
 * that does not say is given; and whether the host has what it says (-EINVAL). */
void submission_says(const struct job_spec *spec, struct record_submitted *wants);
void submission_set_request(const struct config *config, const struct job_spec *spec,
                            const struct job_estimate *estimate, struct record_submitted *wants);
int submission_limit_times(const struct config *config, struct job_spec *spec, struct error *err);
int submission_check_host(const struct config *config, const struct job_spec *spec, struct error *err);

/* Its deadline in node time, where that is said now; 0: it has none. */
int64_t submission_deadline_ns(const struct job_spec *spec);

/* Those whose filter runs are refused. */
void submissions_stop(struct daemon *daemon);

#endif
