/* Control groups, version 2 (Linux Documentation/admin-guide/cgroup-v2.rst), alone or beside version 1 (the hybrid
 * layout). They tell a process's group, and whether the kernel killed a process there because memory ran out. Each
 * launch has a group of our own.
 *
 * Groups are named by their paths below the root of the hierarchy, as /proc/PID/cgroup shows them. None is ever
 * required: where the daemon may not make any, jobs stay in its own. */
#ifndef CARMA_LAUNCH_CGROUP_H
#define CARMA_LAUNCH_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A group beside the daemon's own, delegated to it for its jobs alone (packaging/systemd/carma-jobs.service). */
#define CGROUP_OF_JOBS "carma-jobs.service"

/* The path of the process's group, "/" for the root group; owned by the caller. NULL where the process is gone or the
 * kernel has no version 2. */
char *cgroup_of(pid_t pid);

/* The same from the text of /proc/PID/cgroup. */
char *cgroup_parse(const char *text);

/* Constant in a process's life, and read once: a daemon hands it to its shepherds. */
struct cgroup_place {
    char *mounts; /* the lines of /proc/self/mountinfo that are of version 2 */
    char *base;   /* cgroup_base() of its own group; NULL: it has none */
};

const struct cgroup_place *cgroup_place(void);

/* Called before all other functions here, with the facts that the caller's parent found. */
void cgroup_place_is(const char *mounts, const char *base);

/* Where the files of the group are, by the text of /proc/PID/mountinfo; owned by the caller. NULL: nowhere. */
char *cgroup_locate(const char *mountinfo, const char *path);

/* Whether `path` is the group `group` or one below it. */
bool cgroup_is_within(const char *path, const char *group);

/* Whether the group has nothing to do with the caller's: it neither is one of those that carma makes for its jobs nor
 * has one of them, or the caller, in it. */
bool cgroup_is_apart(const char *path);

/* Number of processes of the group and of those below it that the kernel has killed because memory ran out. Any level's
 * limit counts (memory.events, oom_kill). Where memory is not accounted to the group by itself, the count of the
 * nearest group above it that has one. That may include processes of others. -1: not known. */
int64_t cgroup_oom_kills(const char *path);

/* The group below which a daemon in the group `own` makes those of its jobs. It is CGROUP_OF_JOBS beside its own, where
 * the caller may write there; else its own. For the root group, which all share, it is "/carma". Owned by the caller.
 */
char *cgroup_base(const char *own);

/* Makes the base of all launches' groups, and gives it the controllers that limits need. Once in a daemon's life.
 * Returns whether all of struct cgroup_limits can be had; where not, `why` says in one line which cannot. */
bool cgroup_prepare(struct error *why);

/* Whether the word is one of those in the text of such as cgroup.controllers; not so in NULL. */
bool cgroup_has_word(const char *text, const char *word);

/* Makes the group `name` for a launch; its path, owned by the caller. NULL: it cannot be made here. */
char *cgroup_make(const char *name);

#define CGROUP_PREFIX "shepherd-"

/* Removes the empty groups shepherd-PID-... of shepherds that were killed before they could. */
void cgroup_remove_left(void);

/* Limits of all processes of a group together; 0: none. */
struct cgroup_limits {
    int64_t memory_bytes; /* of the host, without swap: beyond it the kernel kills them all */
    int64_t pids;         /* processes and threads */
    int64_t cpus;         /* processors' worth of time */
    int64_t cpu_weight;   /* of busy processors, beside other groups: 1 to 10000; 0: the kernel's own, 100 */
};

/* Sets those that the group has a controller for (cgroup_prepare). */
int cgroup_limit(const char *path, const struct cgroup_limits *limits, struct error *err);

/* Whether memory is counted for the group by itself. */
bool cgroup_counts_memory(const char *path);

/* The group's directory as a descriptor, or a negative errno; -ENOENT: the group does not exist. */
int cgroup_open(const char *path);

/* fork(), for a process of one thread, with the child in the group from its first instruction on. Entering a group
 * later waits for the whole machine (an RCU grace period, several ms). *entered: whether it is; not so on kernels
 * before 5.7. */
pid_t cgroup_fork(const char *path, bool *entered);

/* Puts the calling process, which has to have one thread, into the group. 0 or a negative errno. */
int cgroup_enter(const char *path);

/* Ends every process of the group and of those below it at once, also those that fork (cgroup.kill, Linux 5.14). 0;
 * -ENOENT: the group does not exist, or the kernel is older; -EPERM: the caller is in it; other negative errnos. */
int cgroup_kill(const char *path);

/* Stops every process of the group and of those below it, so that none forks while the caller goes round them
 * (Linux 5.2). Waits for that, but not long: a process that hangs in the kernel does not fork either. */
void cgroup_freeze(const char *path);
void cgroup_thaw(const char *path);

/* Whether any process is left in the group and those below it; false where the group does not exist. */
bool cgroup_is_populated(const char *path);

/* Removes the group and those that its processes made below it, as far as they are empty. */
void cgroup_remove(const char *path);

#endif
