#include "launch/shepherd/inherit.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FILES        1024
#define OOM_SCORE_ADJ_MAX 1000

/* A step that is impossible here (a /proc that is read only, no right to lower) is left out: the job runs all the
 * same. */
static void raise_oom_score(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "r+e");
    int adjustment;

    if (!file)
        return;
    if (fscanf(file, "%d", &adjustment) == 1) {
        adjustment = (adjustment > 0 ? adjustment : 0) + INHERIT_OOM_SCORE_ADJ;
        rewind(file);
        fprintf(file, "%d", adjustment < OOM_SCORE_ADJ_MAX ? adjustment : OOM_SCORE_ADJ_MAX);
    }
    fclose(file);
}

static void lower_limit(int resource, rlim_t soft)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max < soft ? limit.rlim_max : soft;
    setrlimit(resource, &limit);
}

void inherit_reset(void)
{
    raise_oom_score();
    if (geteuid() != 0)
        return;
    umask(022);
    setpriority(PRIO_PROCESS, 0, 0);
    lower_limit(RLIMIT_NOFILE, OPEN_FILES);
    lower_limit(RLIMIT_CORE, 0);
}
