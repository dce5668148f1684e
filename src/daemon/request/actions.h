/* The API's requests that change something: jobs are taken in, and what people do to them (api/job_verbs.def). Each is
 * answered once its effect is stored. */
#ifndef CARMA_DAEMON_REQUEST_ACTIONS_H
#define CARMA_DAEMON_REQUEST_ACTIONS_H

#include "daemon/daemon.h"
#include "http/http.h"

void actions_submit(struct daemon *daemon, struct http_request *request);

/* `type`: of a row of api/job_verbs.def. */
void actions_change(struct daemon *daemon, struct http_request *request, const struct job_view *view, uint32_t type);

/* Answers once the current turn is stored. `body` is taken over; `otherwise` is the request's fate if it cannot be
 * stored now. */
void actions_reply_once_stored(struct daemon *daemon, struct http_request *request, int status, json_t *body,
                               const char *otherwise);

#endif
