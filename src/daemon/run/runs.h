/* Launches under way: decisions become processes, and the processes' ends become records. */
#ifndef CARMA_DAEMON_RUN_RUNS_H
#define CARMA_DAEMON_RUN_RUNS_H

#include <sys/types.h>

#include "daemon/daemon.h"
#include "launch/launch.h"

int runs_new(struct daemon *daemon, struct runs **runs, struct error *err);
void runs_free(struct runs *runs); /* jobs go on: they belong to their shepherds */

/* After the stored records were applied: takes up the jobs that still run, learns how the rest ended, and starts placed
 * jobs that never started. The findings are inputs of the engine's current turn. */
void runs_reconcile(struct runs *runs);

/* While the placement is being stored: begins the launch, which does nothing that a user could see before runs_start().
 */
void runs_begin_early(struct runs *runs, const struct record *placed);

void runs_start(struct runs *runs, const struct record *placed); /* a failure is an input of the current turn */
void runs_stop(struct runs *runs, uint64_t job);

/* Looks after what others have removed: the directories of all launches, and the socket of their shepherds. */
void runs_heal(struct runs *runs);

/* Judges, as inputs of the engine's current turn, those that have ended and waited for a reading of their GPUs. */
void runs_look(struct runs *runs);

/* The status of the job's last launch; -ENOENT: it has none. */
int runs_last_status(const struct runs *runs, const struct job_view *view, struct launch_status *status);

/* Why the job's limits on the host (--memory, --cpus) are not in force here; NULL: they are, or it has none. Known
 * after runs_reconcile(); owned by runs. */
const char *runs_host_limits_gap(const struct runs *runs, const struct job_spec *spec);

/* Where carma run reaches the job now (launch/terminal.h), owned by the caller; NULL: it does not run, or is no such
 * job.
 */
char *runs_terminal_of(const struct runs *runs, const struct job_view *view);

const char *runs_directory(const struct runs *runs); /* where launches live (daemon/run/run_directories.h) */

/* The job that the process belongs to; 0: none of ours. */
uint64_t runs_owner_of(const struct runs *runs, pid_t pid);

uint32_t runs_count(const struct runs *runs); /* that are under way */

#endif
