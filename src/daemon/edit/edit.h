/* carma edit: what a waiting job asks for is changed, in the fields of api/job_fields.def that are .edited. */
#ifndef CARMA_DAEMON_REQUEST_EDIT_H
#define CARMA_DAEMON_REQUEST_EDIT_H

#include "daemon/daemon.h"
#include "http/http.h"

struct edit;

/* Reads {"MEMBER": value or null, ...}; NULL: it has been answered that this is not known. */
struct edit *edit_read(struct http_request *request);
void edit_free(struct edit *edit); /* may be NULL */

/* The same with the members of an object, which go before its own; `more` may be null. */
struct edit *edit_with(const struct edit *edit, const json_t *more);

bool edit_needs_admin(const struct edit *edit); /* it raises a priority above 0 */

/* 200, or the answer's status and why nobody can change the job now. */
int edit_may(const struct job_view *view, struct error *err);

/* What the job would say, as filter_job() has it; NULL: edit_job() will tell why it could not. A new reference. */
json_t *edit_preview(const struct job_view *view, const struct edit *edit);

/* Of one job, for a caller who may: an input of the current turn. 200, or the answer's status and why in err. */
int edit_job(struct daemon *daemon, uid_t uid, struct job_view *view, const struct edit *edit, struct error *err);

#endif
