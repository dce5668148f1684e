/* Control groups, version 2 (Linux Documentation/admin-guide/cgroup-v2.rst): which one a process is in, and whether the
 * kernel killed anybody there for want of memory. */
#ifndef CARMA_LAUNCH_CGROUP_H
#define CARMA_LAUNCH_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where version 2 is mounted, unless the environment's CARMA_CGROUP_ROOT says otherwise. */
#define CGROUP_ROOT "/sys/fs/cgroup"

/* The path of the process's group below the mount, "/" for the root group; owned by the caller. NULL where the process
 * is gone or the kernel has no version 2. */
char *cgroup_of(pid_t pid);

/* The same from the text of /proc/PID/cgroup. */
char *cgroup_parse(const char *text);

/* Whether `path` is the group `group` or one below it. */
bool cgroup_is_within(const char *path, const char *group);

/* How many processes of the group and of those below it the kernel has killed for want of memory, whosever limit it
 * was (memory.events, oom_kill). -1: not known. */
int64_t cgroup_oom_kills(const char *path);

#endif
