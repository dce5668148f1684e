/* The progress of launches, from their status files: each becomes an input of the core. */
#include "daemon/log.h"
#include "daemon/run/runs_internal.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/engine/engine.h"
#include "daemon/run/ending.h"

#define MISSING_WALL_NS (10 * NS_PER_SEC) /* more than a shepherd takes to make a removed status again */

#define WAKES_MAX 256 /* taken at once: a flood on the socket cannot keep the loop */

static int64_t not_later_than_now(int64_t at_ns)
{
    int64_t now_ns = nodetime_now_ns();

    return at_ns > 0 && at_ns < now_ns ? at_ns : now_ns;
}

static void feed_started(struct runs *runs, struct run *run, const struct launch_status *status, uint32_t type)
{
    if (run->started)
        return;
    run->started = true;
    runs_input(runs, &(struct record){.type = type, .at_ns = not_later_than_now(status->started_ns), .job = run->job});
}

static void feed_ended(struct runs *runs, struct run *run, const struct launch_status *status)
{
    struct record record = {.type = RECORD_EXITED, .at_ns = not_later_than_now(status->ended_ns), .job = run->job};

    feed_started(runs, run, status, RECORD_STARTED);
    record.exited = ending_judge(runs->daemon, views_find(&runs->daemon->views, run->job), status);
    runs_input(runs, &record);
}

/* Whether it can be said why the run ended. Of MPS clients that ended with a kernel's fault the first is taken for the
 * cause, so it has to be judged before the others. */
static bool is_known(const struct runs *runs, struct run *run)
{
    const struct daemon *daemon = runs->daemon;
    const struct job_view *view = views_find(&daemon->views, run->job);

    if (!run->ended_wall_ns)
        run->ended_wall_ns = nodetime_monotonic_wall_ns();
    if (!ending_is_known(daemon, view, &run->status, run->ended_wall_ns))
        return false;
    for (const struct run *other = runs->first; other && ending_is_fault(daemon, view, &run->status);
         other = other->next)
        if (!other->over && other->status.ended_ns < run->status.ended_ns &&
            ending_is_fault(daemon, views_find(&daemon->views, other->job), &other->status))
            return false;
    return true;
}

/* The shepherd stops a job at its time limit by itself; but it knows nothing of MPS, and waits a while for us. */
void runs_end_timed_out(struct runs *runs, struct run *run)
{
    run->timed_out = true;
    mps_jobs_terminate(runs->daemon->mps_jobs, run->job, runs_stop_shepherd);
}

/* After its job's end, a shepherd takes a moment to write that down. */
#define SEEN_BEHIND_WALL_NS NS_PER_SEC

/* A running job's sums must not exceed those at its end: they are counted until shortly before its status was read, and
 * so never fall. */
static void see(struct runs *runs, const struct run *run)
{
    struct job_view *view = views_find(&runs->daemon->views, run->job);
    int64_t seen_ns = nodetime_now_ns() - nodetime_from_wall_ns(SEEN_BEHIND_WALL_NS);

    if (view && seen_ns > view->run->seen_ns)
        job_view_run(view)->seen_ns = seen_ns;
}

/* Its shepherd cannot begin for lack of space, and does once there is. */
static void tell_wait(struct runs *runs, struct run *run, const char *message)
{
    if (run->waits || !*message)
        return;
    run->waits = true;
    runs_set_message(runs, run->job, message);
    daemon_log("job %" PRIu64 " %s", run->job, message);
}

/* Takes in a launch's status; true when the launch is over, or will be without a shepherd. */
bool runs_take_status(struct runs *runs, struct run *run, const struct launch_status *status)
{
    struct mps_jobs *mps_jobs = runs->daemon->mps_jobs;
    bool has_note = *status->message && !run->started;

    run->status = *status;
    switch (status->phase) {
    case LAUNCH_STARTING:
        tell_wait(runs, run, status->message);
        return false;
    case LAUNCH_RUNNING:
        feed_started(runs, run, status, RECORD_STARTED);
        if (run->waits || has_note)
            runs_set_message(runs, run->job, status->message);
        run->waits = false;
        see(runs, run);
        runs_take_progress(runs, run);
        if (status->timed_out && !run->timed_out)
            runs_end_timed_out(runs, run);
        return false;
    case LAUNCH_ENDED:
        if (!is_known(runs, run))
            return true; /* looked at again */
        feed_ended(runs, run, status);
        break;
    case LAUNCH_FAILED:
        if (status->started_ns > 0) /* the time before the command is counted as well */
            feed_started(runs, run, status, RECORD_STARTED);
        runs_feed_launch_failed(runs, run->job, status->message);
        break;
    default:
        return false;
    }
    mps_jobs_leave(mps_jobs, run->job);
    run->over = true;
    return true;
}

/* Only the shepherd of a launch reports its state, although others can write there (a job of the daemon's own user). */
static bool is_trusted(struct run *run, const struct launch_status *status)
{
    if (run->shepherd == 0) { /* it was not known yet: the daemon that started it has ended */
        run->shepherd = status->shepherd;
        run->start_ticks = status->shepherd_start_ticks;
    }
    if (status->shepherd == run->shepherd && status->shepherd_start_ticks == run->start_ticks)
        return true;
    if (!run->doubted)
        daemon_log("job %" PRIu64 ": %s/status is not of its shepherd %d: not trusted", run->job, run->directory,
                   (int)run->shepherd);
    run->doubted = true;
    return false;
}

static void begin_anew(struct runs *runs, struct run *run)
{
    run->over = true;
    mps_jobs_leave(runs->daemon->mps_jobs, run->job);
    runs_start_unless_cancelled(runs, views_find(&runs->daemon->views, run->job));
}

/* What the shepherd of a job that has ended would have removed. */
void runs_remove_files(const struct runs *runs, const struct run *run)
{
    CLEANUP(free_ptr) char *script = runs_script_directory_of(runs, run->directory);
    CLEANUP(free_ptr) char *progress = launch_progress_file(script);
    CLEANUP(free_ptr) char *terminal = launch_terminal_socket(script);

    file_remove_tree(script);
    unlink(progress);
    unlink(terminal);
}

/* The shepherd died without a last word: the remaining processes are killed, and observed gone, before the job counts
 * as lost. A launch that could not begin for lack of space is followed by another. */
void runs_handle_dead_shepherd(struct runs *runs, struct run *run)
{
    struct launch_status status;
    int code = launch_settle(run->directory, &status, NULL);

    if (error_is_passing(code)) { /* looked at again */
        run->retry_later = true;
        return;
    }
    if (code == 0) {
        bool never_began = status.phase == LAUNCH_FAILED && status.shepherd == 0; /* lost like one that had */
        if (never_began && run->retry_later) {
            begin_anew(runs, run);
            return;
        }
        if (status.shepherd != 0 && !is_trusted(run, &status))
            status = run->status;
        else if (!never_began && runs_take_status(runs, run, &status))
            return;
    } else { /* it cannot be read, now or for good: its processes must be gone all the same */
        status = run->status;
    }
    if (!runs_killed(runs, run, &status))
        return; /* looked at again */
    runs_remove_files(runs, run);
    runs_feed_lost(runs, run->job,
                   run->status.rebooted                     ? "the machine was started anew while it ran"
                   : run->missing_wall_ns && !run->shepherd ? "it ran, and nothing is left of its run directory"
                                                            : "its shepherd died, so its processes were killed");
    mps_jobs_leave(runs->daemon->mps_jobs, run->job);
    run->over = true;
}

/* Its shepherd, if it lives, makes the status again that others have removed; true as it has just come, too. */
static bool is_awaited(const struct run *run)
{
    return run->missing_wall_ns &&
           (run->shepherd || nodetime_monotonic_wall_ns() - run->missing_wall_ns < MISSING_WALL_NS);
}

static void look_at(struct runs *runs, struct run *run)
{
    bool known = run->shepherd != 0;
    bool alive = launch_alive(run->shepherd, run->start_ticks); /* before the status: it may write one and exit */
    struct launch_status status;

    if (run->over || (launch_read_status(run->directory, &status, NULL) == 0 && is_trusted(run, &status) &&
                      runs_take_status(runs, run, &status)))
        return;
    if (alive)
        runs_take_over(runs, run);
    else if (known || !is_awaited(run))
        runs_handle_dead_shepherd(runs, run);
}

void runs_look(struct runs *runs)
{
    for (struct run *run = runs->first; run; run = run->next)
        if (run->ended_wall_ns && !run->over)
            look_at(runs, run);
}

void runs_on_look(uv_timer_t *timer)
{
    struct runs *runs = timer->data;

    for (struct run *run = runs->first, *next; run; run = next) {
        next = run->next;
        look_at(runs, run);
        if (run->over && launch_sweeper_is_over(&run->sweeper) && !launch_alive(run->shepherd, run->start_ticks))
            runs_remove(runs, run);
    }
    engine_turn(runs->daemon->engine);
}

/* The job that the next datagram names; 0: none, or the sender is not a shepherd of ours; -1: no more. */
static int64_t take_wake(const struct runs *runs)
{
    char text[64];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(runs->notify_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = length < 0 ? NULL : CMSG_FIRSTHDR(&message);
    struct ucred sender = {.uid = (uid_t)-1};

    if (length < 0)
        return -1;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(head), sizeof sender);
    text[length] = '\0';
    return sender.uid == geteuid() ? strtoll(text, NULL, 10) : 0;
}

/* A wake-up says no more than that there is something to read: nothing is gained by sending one. */
void runs_on_notified(uv_poll_t *poll, int status, int events)
{
    struct runs *runs = poll->data;
    int64_t job;

    for (int i = 0; i < WAKES_MAX && (job = take_wake(runs)) >= 0; i++) {
        struct run *run = job ? runs_run_of(runs, (uint64_t)job) : NULL;
        if (run)
            look_at(runs, run);
    }
    engine_turn(runs->daemon->engine);
}
