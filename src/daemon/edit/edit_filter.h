/* What a user makes of his own waiting jobs comes by the administrator's filter, as what he submits does. */
#ifndef CARMA_DAEMON_REQUEST_EDIT_FILTER_H
#define CARMA_DAEMON_REQUEST_EDIT_FILTER_H

#include "daemon/daemon.h"
#include "daemon/edit/edit.h"

struct edit_filter;

/* Runs the filter for those of the jobs that the user could edit so, and calls `ended` on the loop; NULL where there
 * are none, or no filter. It is freed later, also before `ended`. */
struct edit_filter *edit_filter_start(struct daemon *daemon, uid_t uid, const uint64_t *ids, size_t count,
                                      const struct edit *edit, void (*ended)(void *user), void *user);
bool edit_filter_runs(const struct edit_filter *filter); /* it has still to say something; `filter` may be NULL */
void edit_filter_free(struct edit_filter *filter);       /* may be NULL */

/* edit_job(), with what the filter has said of the job. `filter` NULL: it was not to be asked. */
int edit_filter_job(const struct edit_filter *filter, struct daemon *daemon, uid_t uid, struct job_view *view,
                    const struct edit *edit, struct error *err);

#endif
