/* The launch request of a job (launch/launch.h): from its placement, its submission, the settings and its fence. */
#ifndef CARMA_DAEMON_RUN_RUN_REQUEST_H
#define CARMA_DAEMON_RUN_RUN_REQUEST_H

#include "daemon/daemon.h"
#include "launch/launch.h"

/* Fills in `request`, which has the paths and the directories of MPS, and begins the launch, which waits for
 * launch_go(). The request is not valid afterwards, but for its numbers. Without `filters_devices` the job may open all
 * device nodes. *why: visible_indices(). */
int run_request_begin(const struct daemon *daemon, const struct job_view *view, bool filters_devices,
                      struct launch_request *request, struct launch_begun *begun, enum uuids_why *why,
                      struct error *err);

#endif
