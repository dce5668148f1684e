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

static bool is_late(const struct run *run, const struct job_view *view)
{
    int64_t limit_ns = view->wants->time_limit_ns;

    if (view->state == JOB_SUSPENDED)
        return false;
    return !run->is_lease && limit_ns > 0 && run->status.started_ns > 0 &&
           nodetime_now_ns() - run->status.started_ns - view->run->suspended_ns - limit_ns >
               nodetime_from_wall_ns(LATE_WALL_NS);
}

static void hurry(struct run *run)
{
    run->sweeper.next_wall_ns = run->sweeper.pause_ns = 0;
}

/* Whether its GPUs are free: by a reading since its last process was seen. Where GPUs do not answer in time none is
 * waited for, unless a process hangs that may have one of them. */
static bool is_free(const struct runs *runs, struct run *run, bool hangs)
{
    const struct job_view *view = views_find(&runs->daemon->views, run->job);
    int64_t now_ns = nodetime_monotonic_wall_ns();
    struct takeover *takeover = &run->takeover;
    int used;

    if (!takeover->empty_wall_ns) {
        takeover->empty_wall_ns = now_ns;
        takeover->empty_ns = nodetime_now_ns();
        hurry(run);
    }
    used = view ? node_used_by(runs->daemon->node, view, takeover->empty_ns) : 0;
    return used == 0 || (used < 0 && !hangs && now_ns - takeover->empty_wall_ns > READ_WALL_NS);
}

bool runs_killed(struct runs *runs, struct run *run, const struct launch_status *status)
{
    enum launch_left left =
        launch_sweep_aside(runs->shepherd_path, status, run->directory, run->uid, SIGKILL, &run->sweeper);

    if (left == LEFT_SOME)
        run->takeover.empty_wall_ns = 0;
    return left == LEFT_NONE || (left == LEFT_HANGING && is_free(runs, run, true));
}

/* The processes of a lease are another's to end. */
static const char *ended_of(const struct run *run)
{
    return run->is_lease ? "the lease" : "its processes";
}

static void begin(struct run *run, const struct launch_status *status, int64_t now_ns, int64_t grace_ns)
{
    const char *why = launch_hindrance(run->shepherd, run->start_ticks);

    snprintf(run->takeover.why, sizeof run->takeover.why, "its shepherd %d %s", (int)run->shepherd,
             why ? why : "cannot end it");
    daemon_log("job %" PRIu64 ": %s: carmad ends %s", run->job, run->takeover.why, ended_of(run));
    run->takeover.kill_wall_ns = now_ns + (status->stopped ? 0 : grace_ns);
    run->takeover.asked = status->stopped;
    hurry(run);
}

static void conclude(struct runs *runs, struct run *run, struct launch_status *status)
{
    bool hangs = run->takeover.hangs;
    char message[sizeof status->message];
    struct error err;

    status->timed_out |= run->timed_out;
    status->stopped = !run->lease.ended || run->lease.stopped;
    status->exit_status = run->lease.ended ? run->lease.exit_status : status->exit_status;
    status->signal = run->lease.ended ? run->lease.signal : SIGKILL;
    snprintf(message, sizeof message, "%s%s%s%s", status->timed_out ? "time limit reached; " : "",
             hangs ? "its processes were killed, and hang in the kernel" : run->takeover.why,
             hangs ? "" : ", so carmad ended ", hangs ? "" : ended_of(run));
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

/* Whether there is something for carmad to end. A shepherd without a job may be waiting for space on the disk: for its
 * last status. */
static bool is_stuck(struct runs *runs, struct run *run, const struct launch_status *status)
{
    enum launch_left left;

    if (run->is_lease || launch_hindrance(run->shepherd, run->start_ticks))
        return true;
    left = launch_sweep_aside(runs->shepherd_path, status, NULL, run->uid, 0, &run->sweeper);
    return left == LEFT_SOME || left == LEFT_HANGING;
}

void runs_take_over(struct runs *runs, struct run *run)
{
    const struct job_view *view = views_find(&runs->daemon->views, run->job);
    int64_t now_ns = nodetime_monotonic_wall_ns(), grace_ns = runs->daemon->config.grace_ns;
    struct launch_status status = status_of(run, view);
    struct takeover *takeover = &run->takeover;
    enum launch_left left;
    int signal;

    if (!takeover->told_wall_ns) {
        if (!run->timed_out && is_late(run, view))
            runs_end_timed_out(runs, run);
        return;
    }
    if (!takeover->kill_wall_ns) {
        if (now_ns - takeover->told_wall_ns >= ANSWER_WALL_NS + (status.stopped ? grace_ns : 0) &&
            is_stuck(runs, run, &status))
            begin(run, &status, now_ns, grace_ns);
        return;
    }
    if (run->is_lease) {
        conclude(runs, run, &status);
        return;
    }
    signal = !takeover->asked ? SIGTERM : now_ns >= takeover->kill_wall_ns ? SIGKILL : 0;
    left = launch_sweep_aside(runs->shepherd_path, &status, NULL, run->uid, signal, &run->sweeper);
    if (left == LEFT_UNKNOWN)
        return;
    takeover->asked = true;
    takeover->hangs = left == LEFT_HANGING;
    if (left == LEFT_SOME)
        takeover->empty_wall_ns = 0;
    else if (is_free(runs, run, takeover->hangs))
        conclude(runs, run, &status);
}
