/* GET /v1/jobs/ID/explain: why a job waits, GPU by GPU, and when it is expected to start. */
#ifndef CARMA_DAEMON_REQUEST_EXPLANATION_H
#define CARMA_DAEMON_REQUEST_EXPLANATION_H

#include "daemon/daemon.h"
#include "daemon/view/access.h"
#include "http/http.h"

struct explanations;

struct explanations *explanations_new(struct daemon *daemon);

/* Answers those who wait; the memory goes once the loop has run the rest. */
void explanations_close(struct explanations *explanations);

void explanation_get(struct daemon *daemon, struct http_request *request, const struct job_view *view);

/* Of the job's workload, for those who see all of the job; a new reference. */
json_t *explanation_run_times(const struct daemon *daemon, const struct job_view *view, enum access_view access);

/* Why its command is not tried for an estimate, for the same; null where it is. A new reference. */
json_t *explanation_untried(const struct daemon *daemon, const struct job_view *view, enum access_view access);

#endif
