/* Why a run failed, with facts that only the daemon sees: its GPUs, its MPS domain, and the other jobs there. */
#ifndef CARMA_DAEMON_RUN_ENDING_H
#define CARMA_DAEMON_RUN_ENDING_H

#include "daemon/daemon.h"
#include "launch/launch.h"

/* Whether all is there by which the end is judged: a reading of its GPUs since then, an answer of its MPS domain. To be
 * asked again until it is, which takes seconds at most; `asked_wall_ns` (monotonic) is when it was first asked. */
bool ending_is_known(const struct daemon *daemon, const struct job_view *view, const struct launch_status *status,
                     int64_t asked_wall_ns);

/* The record of the end; the view gets its message. Before the job leaves its MPS domain. */
struct record_exited ending_judge(struct daemon *daemon, struct job_view *view, const struct launch_status *status);

/* Whether both runs were MPS clients and ended with a kernel's fault: then the earlier has to be judged first. */
bool ending_is_fault(const struct daemon *daemon, const struct job_view *view, const struct launch_status *status);

/* "failure" of a job in docs/formats/http.md; `status`: of its last launch. Null where it did not fail. */
json_t *ending_to_json(const struct job_view *view, const struct launch_status *status);

#endif
