/* Leases under way (launch/lease.h): the shepherd of one is told its processes, and its end. */
#ifndef CARMA_DAEMON_RUN_RUNS_LEASE_H
#define CARMA_DAEMON_RUN_RUNS_LEASE_H

#include "daemon/run/runs.h"
#include "launch/lease.h"

struct lease_attach;
struct lease_end;

/* Whether the job is a lease. */
bool runs_is_lease(const struct job_view *view);

/* The job's lease under way, once its shepherd is there; NULL: it is not. Its status is filled in. */
const struct lease *runs_lease_of(const struct runs *runs, uint64_t job, struct launch_status *status);

/* Adds to the step, as process `caller` asks. -ENOENT: the lease is not under way, or there is no such process or
 * group; -EINVAL: it is carma's, or another's; -ENOSPC: too many. */
int runs_lease_attach(struct runs *runs, uint64_t job, const char *step, const struct lease_attach *attach,
                      pid_t caller, struct error *err);

/* Has the lease end; the first word counts. -ENOENT: it is not under way. */
int runs_lease_end(struct runs *runs, uint64_t job, const struct lease_end *end, struct error *err);

/* The variables of its processes: each ends with a NUL; owned by the caller. */
int runs_lease_environment(const struct runs *runs, uint64_t job, char **text, size_t *length, struct error *err);

#endif
