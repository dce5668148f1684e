/* A job's view as the store keeps it beside a snapshot (docs/formats/store.md). It is the result of folding the job's
 * records from the beginning, without the parts in its submission. */
#ifndef CARMA_DAEMON_VIEW_VIEW_STORE_H
#define CARMA_DAEMON_VIEW_VIEW_STORE_H

#include "base/error.h"
#include "daemon/view/view.h"

char *job_view_to_text(const struct job_view *view); /* owned by the caller */

/* Fills a view that has its submission's parts already. -EINVAL: the text is not one of job_view_to_text,
 * and the view stays as it is. */
int job_view_from_text(struct job_view *view, const char *text, struct error *err);

#endif
