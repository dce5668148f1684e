#include "launch/owner.h"

#include "base/proc.h"

#define DEPTH_MAX 4096 /* of a process tree; pids that change while we walk must not keep us here */

bool launch_descends_from(pid_t pid, pid_t ancestor)
{
    struct proc_stat stat;

    for (int depth = 0; depth < DEPTH_MAX && pid > 0; depth++) {
        if (proc_read_stat(pid, &stat) < 0)
            return false;
        if (pid == ancestor)
            return true;
        pid = stat.parent;
    }
    return false;
}
