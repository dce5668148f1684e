/* The result of a capture for its job: the estimate, or a line that says why there is none. Both are shown and stored.
 */
#ifndef CARMA_DAEMON_CAPTURE_RESULT_H
#define CARMA_DAEMON_CAPTURE_RESULT_H

#include <stdbool.h>

#include "daemon/daemon.h"

/* Whether its capture is under way. */
void result_show_estimating(struct daemon *daemon, uint64_t job, bool estimating);

void result_say_why_not(struct daemon *daemon, struct job_view *view, struct error *err);

/* Whether the job has the estimate, which is taken over; else it has the line. */
bool result_use(struct daemon *daemon, struct job_view *view, const struct job *job, struct job_estimate *estimate);

/* Whether it was tried for this job, also by an earlier daemon, and there was none. */
bool result_was_none(const struct job_view *view);

#endif
