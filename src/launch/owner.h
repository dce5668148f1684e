/* Whose GPU process is this: NVML names pids, carma knows shepherds. */
#ifndef CARMA_LAUNCH_OWNER_H
#define CARMA_LAUNCH_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether `pid` is `ancestor` or a descendant of it. Ask with the shepherd's pid, not with the job's main process:
 * a process whose parent has ended is adopted by the shepherd. false where the pid is gone. */
bool launch_descends_from(pid_t pid, pid_t ancestor);

#endif
