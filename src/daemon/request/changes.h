/* What people do to jobs (api/job_verbs.def): to one, POST /v1/jobs/ID/VERB, or to many at once, POST /v1/jobs/VERB
 * with the words of a selection (selection.h). Many are done in pieces, so that others are answered meanwhile, and
 * answered as one: who was changed, who was not, and why. */
#ifndef CARMA_DAEMON_REQUEST_CHANGES_H
#define CARMA_DAEMON_REQUEST_CHANGES_H

#include "daemon/daemon.h"
#include "http/http.h"

struct changes;

struct changes *changes_new(struct daemon *daemon); /* borrowed */
void changes_free(struct changes *changes);         /* requests under way are told that the daemon stops */

/* The row of api/job_verbs.def of that name; -1: there is none. */
int change_find(const char *name);

void change_job(struct changes *changes, struct http_request *request, const struct job_view *view, int verb);

/* POST /v1/jobs/ID/move. */
void change_place(struct changes *changes, struct http_request *request, const struct job_view *view);

/* POST /v1/jobs/edit, with the words of a selection and the changes in its body. */
void change_edit(struct changes *changes, struct http_request *request);

/* With `dry_run` in its query it only says which jobs would be changed. Without ids and user it is about the caller's
 * jobs; without states about those that have not ended. */
void change_many(struct changes *changes, struct http_request *request, int verb);

#endif
