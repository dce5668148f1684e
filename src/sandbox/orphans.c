#include "sandbox/orphans.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"

#define LOOK_MS    1
#define LOOKS_MOST 60000

void orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Whether there were any: those that they leave are children by the next look. */
static bool kill_children(void)
{
    DIR *entries = opendir("/proc");
    const struct dirent *entry;
    struct proc_stat stat;
    bool any = false;

    while (entries && (entry = readdir(entries))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && proc_read_stat(pid, &stat) == 0 && stat.parent == getpid())
            any = kill(pid, SIGKILL) == 0 || any;
    }
    if (entries)
        closedir(entries);
    return any;
}

void orphans_end(void)
{
    for (int looks = 0; kill_children() && looks < LOOKS_MOST; looks++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        poll(NULL, 0, LOOK_MS);
    }
}
