/* The command that a job's user wants run after each of its runs (--on-end). All has been told of the run by then, so
 * its GPUs are others'. The command has a control group like the job's, with the same limits and no GPU, a minute, and
 * the shepherd waits for it alone: carmad knows nothing of it, and a hang or a failure of it is nobody else's. */
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"
#include "launch/shepherd/shepherd.h"

#define ON_END_NS (60 * NS_PER_SEC) /* wall */
#define SIGNALLED 128               /* as shells say it */

static void take_gpus_away(const struct shepherd *s)
{
    struct device_filter filter;
    struct error err;

    if (!s->request.devices || !*s->status.cgroup || device_filter_parse(s->request.devices, &filter) < 0)
        return;
    filter.gpu_count = filter.cap_count = 0;
    if (device_filter_attach(&filter, s->status.cgroup, &err) < 0)
        shepherd_complain(&err);
}

/* Whether somebody is left; *over: the command itself has ended, and its time with it. */
static bool is_running(pid_t command, bool *over)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
        *over |= pid == command;
    return pid == 0;
}

void on_end_run(struct shepherd *s)
{
    const struct launch_status *status = &s->status;
    const char *cause = status->stopped && !status->timed_out ? "stopped" : exit_cause_name(status->cause);
    int64_t until_ns = nodetime_monotonic_wall_ns() + ON_END_NS;
    int code = status->signal ? SIGNALLED + status->signal : status->exit_status;
    bool over = false;
    pid_t pid;

    group_make(s);
    group_limit(s);
    take_gpus_away(s);
    pid = fork();
    if (pid == 0)
        child_run_after(&s->request, *status->cgroup ? status->cgroup : NULL, cause, code);
    while (pid > 0 && is_running(pid, &over)) {
        struct pollfd signals = {.fd = s->signal_fd, .events = POLLIN};
        over |= shepherd_stop_is_pending(s) || nodetime_monotonic_wall_ns() >= until_ns;
        if (over)
            ending_kill(s);
        poll(&signals, 1, over ? KILL_PAUSE_MS : KILL_PAUSE_MAX_MS);
    }
    group_remove(s);
}
