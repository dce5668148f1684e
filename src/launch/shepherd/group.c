#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"
#include "launch/shepherd/shepherd.h"

#define GROUP_ROUNDS 100

void group_make(struct shepherd *s)
{
    CLEANUP(free_ptr)
    char *name = xasprintf(CGROUP_PREFIX "%d-%" PRIu64, (int)s->status.shepherd, s->status.shepherd_start_ticks);
    CLEANUP(free_ptr) char *path = cgroup_make(name);

    if (!path)
        return;
    if (strlen(path) >= sizeof s->status.cgroup || strchr(path, '\n')) {
        cgroup_remove(path);
        return;
    }
    memcpy(s->status.cgroup, path, strlen(path) + 1);
}

void group_limit(const struct shepherd *s)
{
    struct error err;

    if (*s->status.cgroup && cgroup_limit(s->status.cgroup, &s->request.limits, &err) < 0)
        shepherd_complain(&err);
}

/* The daemon has tried that it can be had: else the job goes on without, and the shepherd's log says why. */
bool group_filter_devices(const struct shepherd *s, const char *cgroup)
{
    struct error err;

    if (!s->request.devices || !*cgroup)
        return false;
    if (s->filter < 0)
        error_set(&err, EINVAL, "the kernel takes no filter of the devices '%.60s'", s->request.devices);
    else if (device_filter_put_on(s->filter, cgroup, &err) == 0)
        return true;
    shepherd_complain(&err);
    return false;
}

/* Where a job has no group of its own, all that descends from the daemon shares one. That tells of the kernel's kills
 * too, though maybe of others'. */
void group_find(struct shepherd *s)
{
    CLEANUP(free_ptr) char *own = cgroup_of(getpid());
    CLEANUP(free_ptr) char *jobs = cgroup_of(s->process);

    if (jobs && strcmp(jobs, s->status.cgroup) != 0) /* it could not enter it */
        *s->status.cgroup = '\0';
    s->memory_group = jobs ? steal_ptr(&jobs) : steal_ptr(&own);
    s->oom_kills = s->memory_group ? cgroup_oom_kills(s->memory_group) : -1;
}

/* Kills unmanaged processes left in the control group. */
void group_remove(struct shepherd *s)
{
    if (!*s->status.cgroup)
        return;
    for (int round = 0; round < GROUP_ROUNDS && cgroup_is_populated(s->status.cgroup); round++) {
        cgroup_kill(s->status.cgroup);
        poll(NULL, 0, KILL_PAUSE_MS);
    }
    cgroup_remove(s->status.cgroup);
}
