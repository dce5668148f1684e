/* The API's requests that change something: jobs are taken in, and what people do to them (api/job_verbs.def; whom a
 * request is about: changes.h). Each is answered once its effect is stored. */
#ifndef CARMA_DAEMON_REQUEST_ACTIONS_H
#define CARMA_DAEMON_REQUEST_ACTIONS_H

#include "daemon/daemon.h"
#include "http/http.h"

/* `judged`: its jobs are judged as if they were submitted, and none is. */
void actions_submit(struct daemon *daemon, struct http_request *request, bool judged);

/* Does to the job what the record says, a row's of api/job_verbs.def for example; its time and job are set here. For a
 * caller who may do it: an input of the current turn, which is left to the caller. 200, or the answer's status and why
 * in err. */
int actions_change_one(struct daemon *daemon, uid_t uid, const struct job_view *view, const struct record *what,
                       struct error *err);

/* Fills err: that it cannot be done to a job that has ended. */
void actions_ended(const struct job_view *view, const struct record *what, struct error *err);

/* Answers once the current turn is stored. `body` is taken over; `otherwise` is the request's fate if it cannot be
 * stored now. */
void actions_reply_once_stored(struct daemon *daemon, struct http_request *request, int status, json_t *body,
                               const char *otherwise);

#endif
