/* The backstop behind the shepherds. One may not do what it was told: it was stopped itself (SIGSTOP), or hangs in the
 * kernel. Then carmad ends the job in its place. It signals the shepherd's descendants, the job's control group and
 * session, and nobody else. The GPUs are free when none of these processes is left, and no reading of a GPU names one.
 */
#include "daemon/log.h"
#include "daemon/run/runs_internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/node/node.h"
#include "launch/status.h"

#define ANSWER_WALL_NS (10 * NS_PER_SEC) /* in which a shepherd does what it has to */
#define LATE_WALL_NS   (15 * NS_PER_SEC) /* after the time limit; it looks at the clock every 10 s */
#define READ_WALL_NS   (3 * NS_PER_SEC)  /* for a reading of GPUs that do not answer */

/* As the status would be if the shepherd had got so far. */
static struct launch_status status_of(const struct run *run, const struct job_view *view)
{
    struct launch_status status = run->status;

    if (!status.shepherd) {
        status_init(&status);
        status.job = view->id;
        status.launch = view->attempts;
        status.shepherd = run->shepherd;
        status.shepherd_start_ticks = run->start_ticks;
    }
    return status;
}

/* A lease's processes are another's to end. */
static int signal_job(const struct run *run, const struct launch_status *status, int signal)
{
    return run->is_lease ? 0 : launch_sweep(status, run->uid, signal);
}

static bool is_late(const struct run *run, const struct job_view *view)
{
    int64_t limit_ns = view->wants->time_limit_ns;

    return !run->is_lease && limit_ns > 0 && run->status.started_ns > 0 &&
           nodetime_now_ns() - run->status.started_ns - limit_ns > nodetime_from_wall_ns(LATE_WALL_NS);
}

/* A shepherd without a job may be waiting for space on the disk: for its last status. */
static bool is_stuck(const struct run *run, const struct launch_status *status)
{
    return run->is_lease || launch_hindrance(run->shepherd, run->start_ticks) || signal_job(run, status, 0) > 0;
}

static void begin(struct run *run, const struct launch_status *status, int64_t now_ns, int64_t grace_ns)
{
    const char *why = launch_hindrance(run->shepherd, run->start_ticks);

    snprintf(run->takeover.why, sizeof run->takeover.why, "its shepherd %d %s", (int)run->shepherd,
             why ? why : "cannot end it");
    daemon_log("job %" PRIu64 ": %s: carmad ends its processes", run->job, run->takeover.why);
    run->takeover.kill_wall_ns = now_ns + (status->stopped ? 0 : grace_ns);
    signal_job(run, status, SIGTERM);
    signal_job(run, status, SIGCONT);
}

/* Whether its GPUs are free: by a reading since its last process was seen, where there is one in time. */
static bool is_free(const struct runs *runs, struct run *run, const struct job_view *view, int64_t now_ns)
{
    struct takeover *takeover = &run->takeover;
    int used;

    if (!takeover->empty_wall_ns) {
        takeover->empty_wall_ns = now_ns;
        takeover->empty_ns = nodetime_now_ns();
    }
    used = run->is_lease ? 0 : node_used_by(runs->daemon->node, view, takeover->empty_ns);
    return used == 0 || (used < 0 && now_ns - takeover->empty_wall_ns > READ_WALL_NS);
}

static void conclude(struct runs *runs, struct run *run, struct launch_status *status)
{
    bool hangs = signal_job(run, status, 0) > 0;
    char message[sizeof status->message];
    struct error err;

    status->timed_out |= run->timed_out;
    snprintf(message, sizeof message, "%s%s%s", status->timed_out ? "time limit reached; " : "",
             hangs ? "its processes were killed, and hang in the kernel" : run->takeover.why,
             hangs ? "" : ", so carmad ended its processes");
    if (launch_conclude(run->directory, status, message, &err) < 0)
        daemon_log("job %" PRIu64 ": %s", run->job, err.text);
    runs_remove_files(runs, run);
    runs_take_status(runs, run, status);
}

void runs_told(struct run *run)
{
    if (!run->takeover.told_wall_ns)
        run->takeover.told_wall_ns = nodetime_monotonic_wall_ns();
}

void runs_take_over(struct runs *runs, struct run *run)
{
    const struct job_view *view = views_find(&runs->daemon->views, run->job);
    int64_t now_ns = nodetime_monotonic_wall_ns(), grace_ns = runs->daemon->config.grace_ns;
    struct launch_status status = status_of(run, view);
    struct takeover *takeover = &run->takeover;

    if (!takeover->told_wall_ns) {
        if (!run->timed_out && is_late(run, view) && is_stuck(run, &status))
            runs_end_timed_out(runs, run);
        return;
    }
    if (!takeover->kill_wall_ns) {
        if (now_ns - takeover->told_wall_ns < ANSWER_WALL_NS + (status.stopped ? grace_ns : 0) ||
            !is_stuck(run, &status))
            return;
        begin(run, &status, now_ns, grace_ns);
    }
    if (signal_job(run, &status, now_ns >= takeover->kill_wall_ns ? SIGKILL : 0) > 0)
        takeover->empty_wall_ns = 0;
    else if (is_free(runs, run, view, now_ns))
        conclude(runs, run, &status);
}
