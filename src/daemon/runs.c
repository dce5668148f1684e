#include "daemon/runs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/handle.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/ending.h"
#include "daemon/engine.h"
#include "daemon/node.h"
#include "daemon/run_directories.h"
#include "daemon/run_request.h"
#include "daemon/sharing.h"
#include "launch/cgroup.h"
#include "launch/device_filter.h"
#include "launch/launch.h"
#include "launch/owner.h"
#include "launch/spawn_shepherd.h"

/* Shepherds tell of each change; looking at them all now and then finds what was not told, e.g. their death. */
#define LOOK_WALL_MS 500

#define PREPARE_WALL_MS 10

#define POKES_MAX 256 /* taken at once: a flood on the socket cannot keep the loop */

struct run {
    uint64_t job;
    char *directory; /* owned */
    pid_t shepherd;
    uint64_t start_ticks;
    struct launch_status status; /* as last read: where its processes are, how it ended */
    int64_t ended_wall_ns;       /* monotonic; when it was first seen to have ended; 0: it has not */
    uint32_t uid;
    bool started; /* the core knows that it runs */
    bool doubted; /* it was said that there is a status which is not its shepherd's */
    bool waits;     /* its shepherd waits for space, and says so */
    bool timed_out; /* its time is up, and its MPS clients were seen to */
    bool put_off; /* it could not begin for lack of space or the like, and has no shepherd */
    bool over;    /* the core knows that it has ended; the shepherd has still to be reaped */
    struct run *next;
};

/* A launch that waits until its placement is stored: what it takes to store it is so much time won. */
struct early {
    uint64_t job; /* 0: there is none */
    uint32_t launch;
    char *directory; /* owned */
    struct launch_begun begun;
};

struct runs {
    struct daemon *daemon;
    char *directory;     /* of all run directories */
    char *scripts;       /* of the scripts of jobs that run: where their users can read them */
    char *shepherd_path;
    char *notify_path;
    int notify_fd;
    uv_poll_t *notify_poll;
    uv_timer_t *look;
    uv_timer_t *prepare; /* the next shepherd, once the last job has had the processors for its own start */
    struct run *first;
    struct early early;
    bool filters_devices;    /* jobs can open the device nodes of their own GPUs only */
    bool short_of_something; /* the last start failed for lack of a resource that may return; reported once */
};

/* The number of tries that the job's launch has left a directory of. */
static uint32_t tries_of(const struct runs *runs, const struct job_view *view)
{
    return run_directory_tries(runs->directory, view->id, view->launches);
}

static char *directory_of(const struct runs *runs, const struct job_view *view, uint32_t try)
{
    return run_directory(runs->directory, view->id, view->launches, try);
}

static char *script_directory_of(const struct runs *runs, const char *run_directory)
{
    return xasprintf("%s%s", runs->scripts, strrchr(run_directory, '/'));
}

static void run_free(struct run *run)
{
    free(run->directory);
    free(run);
}

static struct run *run_add(struct runs *runs, const struct job_view *view, const char *directory, pid_t shepherd,
                           uint64_t start_ticks)
{
    struct run *run = xcalloc(1, sizeof *run);

    *run = (struct run){.job = view->id,
                        .directory = xstrdup(directory),
                        .shepherd = shepherd,
                        .start_ticks = start_ticks,
                        .uid = view->wants->uid,
                        .next = runs->first};
    runs->first = run;
    return run;
}

/* The launch of the job that is under way. */
static struct run *run_of(const struct runs *runs, uint64_t job)
{
    for (struct run *run = runs->first; run; run = run->next)
        if (run->job == job && !run->over)
            return run;
    return NULL;
}

static void run_remove(struct runs *runs, struct run *run)
{
    struct run **at = &runs->first;

    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run_free(run);
}

static void start_unless_cancelled(struct runs *runs, const struct job_view *view);

/* ---- What becomes of launches ---- */

static void input(struct runs *runs, const struct record *record)
{
    struct error err;

    if (engine_input(runs->daemon->engine, record, &err) != 0)
        daemon_log("job %" PRIu64 ": %s", record->job, err.text);
}

static int64_t not_later_than_now(int64_t at_ns)
{
    int64_t now_ns = nodetime_now_ns();

    return at_ns > 0 && at_ns < now_ns ? at_ns : now_ns;
}

static void set_message(struct runs *runs, uint64_t job, const char *message)
{
    struct job_view *view = views_find(&runs->daemon->views, job);

    if (!view)
        return;
    job_view_set_message(view, message);
    views_touch(&runs->daemon->views, view);
}

static void feed_started(struct runs *runs, struct run *run, const struct launch_status *status, uint32_t type)
{
    if (run->started)
        return;
    run->started = true;
    input(runs, &(struct record){.type = type, .at_ns = not_later_than_now(status->started_ns), .job = run->job});
}

static void feed_ended(struct runs *runs, struct run *run, const struct launch_status *status)
{
    struct record record = {.type = RECORD_EXITED, .at_ns = not_later_than_now(status->ended_ns), .job = run->job};

    feed_started(runs, run, status, RECORD_STARTED);
    record.exited = ending_judge(runs->daemon, views_find(&runs->daemon->views, run->job), status);
    input(runs, &record);
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
    for (const struct run *other = runs->first; other && ending_is_fault(daemon, view, &run->status); other = other->next)
        if (!other->over && other->status.ended_ns < run->status.ended_ns &&
            ending_is_fault(daemon, views_find(&daemon->views, other->job), &other->status))
            return false;
    return true;
}

static void feed_launch_failed(struct runs *runs, uint64_t job, const char *message)
{
    set_message(runs, job, message);
    input(runs, &(struct record){.type = RECORD_LAUNCH_FAILED, .at_ns = nodetime_now_ns(), .job = job});
}

static void stop_shepherd(struct daemon *daemon, uint64_t job);

/* The shepherd stops a job at its time limit by itself; but it knows nothing of MPS, and waits a while for us. */
static void end_mps_clients(struct runs *runs, struct run *run)
{
    run->timed_out = true;
    sharing_terminate(runs->daemon->sharing, run->job, stop_shepherd);
}

/* A shepherd that has seen its job end takes a moment to write that down. */
#define SEEN_BEHIND_WALL_NS NS_PER_SEC

/* A running job's sums must not exceed those at its end: they are counted until shortly before its status was read, and
 * so never fall. */
static void see(struct runs *runs, const struct run *run)
{
    struct job_view *view = views_find(&runs->daemon->views, run->job);
    int64_t seen_ns = nodetime_now_ns() - nodetime_from_wall_ns(SEEN_BEHIND_WALL_NS);

    if (view && seen_ns > view->seen_ns)
        view->seen_ns = seen_ns;
}

/* Its shepherd cannot begin for lack of space, and does once there is. */
static void tell_wait(struct runs *runs, struct run *run, const char *message)
{
    if (run->waits || !*message)
        return;
    run->waits = true;
    set_message(runs, run->job, message);
    daemon_log("job %" PRIu64 " %s", run->job, message);
}

/* Takes in a launch's status; true when the launch is over, or will be without a shepherd. */
static bool take_status(struct runs *runs, struct run *run, const struct launch_status *status)
{
    struct sharing *sharing = runs->daemon->sharing;

    run->status = *status;
    switch (status->phase) {
    case LAUNCH_STARTING:
        tell_wait(runs, run, status->message);
        return false;
    case LAUNCH_RUNNING:
        feed_started(runs, run, status, RECORD_STARTED);
        if (run->waits)
            set_message(runs, run->job, NULL);
        run->waits = false;
        see(runs, run);
        if (status->timed_out && !run->timed_out)
            end_mps_clients(runs, run);
        return false;
    case LAUNCH_ENDED:
        if (!is_known(runs, run))
            return true; /* looked at again */
        feed_ended(runs, run, status);
        break;
    case LAUNCH_FAILED:
        if (status->started_ns > 0) /* the time before the command is counted as well */
            feed_started(runs, run, status, RECORD_STARTED);
        feed_launch_failed(runs, run->job, status->message);
        break;
    default:
        return false;
    }
    sharing_leave(sharing, run->job);
    run->over = true;
    return true;
}

static void feed_lost(struct runs *runs, uint64_t job, const char *message)
{
    set_message(runs, job, message);
    input(runs, &(struct record){.type = RECORD_LOST, .at_ns = nodetime_now_ns(), .job = job});
}

/* Only the shepherd of a launch reports its state, although others can write there (a job of the daemon's own user). */
static bool is_believed(struct run *run, const struct launch_status *status)
{
    if (run->shepherd == 0) { /* it was not known yet: the daemon that started it has ended */
        run->shepherd = status->shepherd;
        run->start_ticks = status->shepherd_start_ticks;
    }
    if (status->shepherd == run->shepherd && status->shepherd_start_ticks == run->start_ticks)
        return true;
    if (!run->doubted)
        daemon_log("job %" PRIu64 ": %s/status is not of its shepherd %d: not believed", run->job, run->directory,
                   (int)run->shepherd);
    run->doubted = true;
    return false;
}

static void begin_anew(struct runs *runs, struct run *run)
{
    run->over = true;
    sharing_leave(runs->daemon->sharing, run->job);
    start_unless_cancelled(runs, views_find(&runs->daemon->views, run->job));
}

/* The shepherd died without a last word: the remaining processes are killed, and observed gone, before the job counts
 * as lost. A launch that could not begin for lack of space is followed by another. */
static void bury(struct runs *runs, struct run *run)
{
    struct launch_status status;
    int code = launch_settle(run->directory, &status, NULL);

    if (error_is_passing(code)) { /* looked at again */
        run->put_off = true;
        return;
    }
    if (code == 0) {
        bool never_began = status.phase == LAUNCH_FAILED && status.shepherd == 0; /* lost like one that had */
        if (never_began && run->put_off) {
            begin_anew(runs, run);
            return;
        }
        if (status.shepherd != 0 && !is_believed(run, &status))
            status = run->status;
        else if (!never_began && take_status(runs, run, &status))
            return;
    } else { /* it cannot be read, now or for good: its processes must be gone all the same */
        status = run->status;
    }
    if (launch_sweep(run->directory, &status, run->uid) > 0)
        return; /* looked at again */
    CLEANUP(free_ptr) char *script = script_directory_of(runs, run->directory);
    file_remove_tree(script);
    feed_lost(runs, run->job, run->status.rebooted ? "the machine was started anew while it ran"
                                                   : "its shepherd died, so its processes were killed");
    sharing_leave(runs->daemon->sharing, run->job);
    run->over = true;
}

static void look_at(struct runs *runs, struct run *run)
{
    bool alive = launch_alive(run->shepherd, run->start_ticks); /* before the status: it may write one and exit */
    struct launch_status status;

    if (run->over || (launch_read_status(run->directory, &status, NULL) == 0 && is_believed(run, &status) &&
                      take_status(runs, run, &status)))
        return;
    if (!alive)
        bury(runs, run);
}

void runs_look(struct runs *runs)
{
    for (struct run *run = runs->first; run; run = run->next)
        if (run->ended_wall_ns && !run->over)
            look_at(runs, run);
}

static void on_look(uv_timer_t *timer)
{
    struct runs *runs = timer->data;

    for (struct run *run = runs->first, *next; run; run = next) {
        next = run->next;
        look_at(runs, run);
        if (run->over && !launch_alive(run->shepherd, run->start_ticks))
            run_remove(runs, run);
    }
    engine_turn(runs->daemon->engine);
}

/* The job that the next datagram names; 0: none, or the sender is not a shepherd of ours; -1: no more. */
static int64_t take_poke(const struct runs *runs)
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

/* A poke says no more than that there is something to read: nothing is gained by sending one. */
static void on_notified(uv_poll_t *poll, int status, int events)
{
    struct runs *runs = poll->data;
    int64_t job;

    (void)status;
    (void)events;
    for (int i = 0; i < POKES_MAX && (job = take_poke(runs)) >= 0; i++) {
        struct run *run = job ? run_of(runs, (uint64_t)job) : NULL;
        if (run)
            look_at(runs, run);
    }
    engine_turn(runs->daemon->engine);
}

/* ---- Starting and stopping ---- */

static void on_prepare(uv_timer_t *timer)
{
    const struct runs *runs = timer->data;

    spawn_prepare(runs->shepherd_path, runs->directory, NULL); /* a failure is reported by the next job's start */
}

/* The job is found without a shepherd when it is looked at, and begun again. */
static void put_off(struct runs *runs, const struct job_view *view, const char *directory, const char *why)
{
    sharing_leave(runs->daemon->sharing, view->id);
    if (!runs->short_of_something)
        daemon_log("job %" PRIu64 " waits until it can be started: %s", view->id, why);
    runs->short_of_something = true;
    run_add(runs, view, directory, 0, 0)->put_off = true;
}

/* The job was started with it; a later configuration does not change it. */
static void show_limit(struct runs *runs, uint64_t job, int64_t limit_bytes)
{
    struct job_view *view = views_find(&runs->daemon->views, job);

    if (view->process_limit_bytes == limit_bytes)
        return;
    view->process_limit_bytes = limit_bytes;
    view->changed = true;
    views_touch(&runs->daemon->views, view);
}

static int begin(struct runs *runs, const struct job_view *view, const char *directory, const char *mps_pipe_directory,
                 const char *mps_log_directory, struct launch_begun *begun, struct error *err)
{
    CLEANUP(free_ptr) char *script = script_directory_of(runs, directory);
    struct launch_request request = {.shepherd = runs->shepherd_path,
                                     .run_directory = directory,
                                     .script_directory = script,
                                     .mps_pipe_directory = mps_pipe_directory,
                                     .mps_log_directory = mps_log_directory,
                                     .notify_socket = runs->notify_path};
    int code = run_request_begin(runs->daemon, view, runs->filters_devices, &request, begun, err);

    show_limit(runs, view->id, mps_pipe_directory ? request.mps_memory_limit_bytes : -1);
    return code;
}

static void let_go(struct runs *runs, const struct job_view *view, const char *directory, struct launch_begun *begun)
{
    launch_go(begun);
    uv_timer_start(runs->prepare, on_prepare, PREPARE_WALL_MS, 0);
    runs->short_of_something = false;
    run_add(runs, view, directory, begun->shepherd, begun->start_ticks);
}

static void start(struct runs *runs, const struct job_view *view, const char *mps_pipe_directory,
                  const char *mps_log_directory)
{
    CLEANUP(free_ptr) char *directory = directory_of(runs, view, tries_of(runs, view) + 1);
    struct launch_begun begun;
    struct error err;
    int code;

    if (runs->filters_devices && !node_was_read(runs->daemon->node, view)) {
        put_off(runs, view, directory, "its GPUs have not been read yet, so it is not known which device nodes are theirs");
        return;
    }
    code = begin(runs, view, directory, mps_pipe_directory, mps_log_directory, &begun, &err);
    if (code == 0) {
        let_go(runs, view, directory, &begun);
    } else if (error_is_passing(code)) {
        put_off(runs, view, directory, err.text);
    } else {
        sharing_leave(runs->daemon->sharing, view->id);
        feed_launch_failed(runs, view->id, err.text);
    }
}

/* ---- A start that has begun before its placement is stored ---- */

static void drop_early(struct runs *runs)
{
    if (!runs->early.job)
        return;
    launch_drop(&runs->early.begun, runs->early.directory);
    free_ptr(&runs->early.directory);
    runs->early.job = 0;
}

void runs_begin_early(struct runs *runs, const struct record *placed)
{
    const struct job_view *view = views_find(&runs->daemon->views, placed->job);
    struct early *early = &runs->early;

    if (early->job || !spawn_waiting() || view->unreadable || sharing_is_for(runs->daemon, view) ||
        (runs->filters_devices && !node_was_read(runs->daemon->node, view)))
        return; /* it begins once it is stored, as do all but one at a time */
    early->directory = directory_of(runs, view, tries_of(runs, view) + 1);
    if (begin(runs, view, early->directory, NULL, NULL, &early->begun, NULL) == 0) {
        early->job = view->id;
        early->launch = view->launches;
    } else {
        free_ptr(&early->directory);
    }
}

/* Whether the job was begun early, and now runs. */
static bool go_on(struct runs *runs, const struct job_view *view)
{
    struct early *early = &runs->early;

    if (early->job != view->id || early->launch != view->launches)
        return false;
    let_go(runs, view, early->directory, &early->begun);
    free_ptr(&early->directory);
    early->job = 0;
    return true;
}

static const char cancelled_early[] = "cancelled before it was started";

static void on_mps_ready(struct daemon *daemon, uint64_t job, const char *pipe_directory, const char *log_directory,
                         const struct error *err)
{
    const struct job_view *view = views_find(&daemon->views, job);

    if (!pipe_directory)
        feed_launch_failed(daemon->runs, job, view->state == JOB_STOPPING ? cancelled_early : err->text);
    else
        start(daemon->runs, view, pipe_directory, log_directory);
}

/* A job that was cancelled while its placement was being stored, or its daemon away, is not begun: nothing would stop it. */
static void start_unless_cancelled(struct runs *runs, const struct job_view *view)
{
    if (view->state == JOB_STOPPING) {
        if (runs->early.job == view->id)
            drop_early(runs);
        feed_launch_failed(runs, view->id, cancelled_early);
    } else if (view->unreadable) {
        feed_launch_failed(runs, view->id, view->unreadable);
    } else if (sharing_is_for(runs->daemon, view)) {
        sharing_join(runs->daemon->sharing, view, on_mps_ready);
    } else if (!go_on(runs, view)) {
        start(runs, view, NULL, NULL);
    }
}

void runs_start(struct runs *runs, const struct record *placed)
{
    start_unless_cancelled(runs, views_find(&runs->daemon->views, placed->job));
}

static void stop_shepherd(struct daemon *daemon, uint64_t job)
{
    struct run *run = run_of(daemon->runs, job);
    struct error err;

    if (!run || launch_stop(run->shepherd, run->start_ticks, &err) == 0)
        return;
    if (launch_alive(run->shepherd, run->start_ticks)) {
        daemon_log("job %" PRIu64 " could not be stopped: %s", job, err.text);
        input(daemon->runs, &(struct record){.type = RECORD_SIGNAL_FAILED, .at_ns = nodetime_now_ns(), .job = job});
    } /* else it has just ended, or will be found lost */
}

void runs_stop(struct runs *runs, uint64_t job)
{
    struct daemon *daemon = runs->daemon;

    if (sharing_is_waiting(daemon->sharing, job)) {
        sharing_leave(daemon->sharing, job);
        feed_launch_failed(runs, job, cancelled_early);
    } else {
        sharing_terminate(daemon->sharing, job, stop_shepherd);
    }
}

uint64_t runs_owner_of(const struct runs *runs, pid_t pid)
{
    CLEANUP(free_ptr) struct owner_launch *launches = NULL;
    const struct owner_launch *found;
    size_t count = 0, capacity = 0;

    for (const struct run *run = runs->first; run; run = run->next) {
        array_reserve(launches, capacity, count + 1);
        launches[count++] = (struct owner_launch){.job = run->job,
                                                  .shepherd = run->shepherd,
                                                  .shepherd_start_ticks = run->start_ticks,
                                                  .process = run->status.process,
                                                  .process_start_ticks = run->status.process_start_ticks,
                                                  .cgroup = run->status.cgroup};
    }
    found = owner_find(pid, launches, count);
    return found ? found->job : 0;
}

int runs_last_status(const struct runs *runs, const struct job_view *view, struct launch_status *status)
{
    CLEANUP(free_ptr) char *directory = directory_of(runs, view, tries_of(runs, view));

    return launch_read_status(directory, status, NULL);
}

uint32_t runs_count(const struct runs *runs)
{
    uint32_t count = 0;

    for (const struct run *run = runs->first; run; run = run->next)
        count += !run->over;
    return count;
}

/* ---- After a restart ---- */

/* Of a job that is known to have run, nothing was found: it may have done half of its work. */
static void start_again(struct runs *runs, const struct job_view *view)
{
    if (view->state == JOB_RUNNING)
        feed_lost(runs, view->id, "it ran, and nothing is left of its run directory");
    else
        start_unless_cancelled(runs, view);
}

static void reconcile(struct runs *runs, struct job_view *view)
{
    uint32_t tries = tries_of(runs, view);
    CLEANUP(free_ptr) char *directory = directory_of(runs, view, tries);
    struct launch_status status;
    struct error err;
    struct run *run;

    if (tries == 0) {
        start_again(runs, view);
        return;
    }
    if (launch_settle(directory, &status, &err) != 0) { /* looked at again: the reason may be lack of space */
        daemon_log("job %" PRIu64 ": %s", view->id, err.text);
        status = (struct launch_status){.phase = LAUNCH_STARTING};
    }
    if (status.phase == LAUNCH_FAILED && status.shepherd == 0) { /* the daemon died before the shepherd began */
        start_again(runs, view);
        return;
    }
    run = run_add(runs, view, directory, status.shepherd, status.shepherd_start_ticks);
    run->started = view->state != JOB_PLACED && view->started_ns >= 0;
    if (sharing_is_for(runs->daemon, view))
        sharing_adopt(runs->daemon->sharing, view);
    if (take_status(runs, run, &status))
        return;
    if (!launch_alive(run->shepherd, run->start_ticks)) {
        bury(runs, run);
        return;
    }
    if (status.phase == LAUNCH_RUNNING)
        input(runs, &(struct record){.type = RECORD_ADOPTED, .at_ns = nodetime_now_ns(), .job = view->id});
    if (view->state == JOB_STOPPING)
        runs_stop(runs, view->id);
}

static bool is_known_job(uint64_t job, const void *views)
{
    return views_find(views, job);
}

void runs_forget(struct runs *runs, const struct job_view *view)
{
    run_directories_remove(runs->directory, view->id, view->launches);
}

/* Once, so that a launch need not find out. */
static void try_device_filters(struct runs *runs)
{
    struct error err;

    if (runs->daemon->config.device_cgroup == DEVICE_CGROUP_OFF)
        return;
    runs->filters_devices = device_filter_try(&err) == 0;
    if (!runs->filters_devices)
        daemon_log("jobs can open the device nodes of all GPUs: %s", err.text);
}

void runs_reconcile(struct runs *runs)
{
    struct error why;

    if (!cgroup_prepare(&why))
        daemon_log("--memory, --cpus, job_memory_max, job_pids_max and job_cpu_weight limit no job here: %s (carma doctor)",
                   why.text);
    cgroup_remove_left();
    try_device_filters(runs);
    run_directories_sweep(runs->directory, is_known_job, &runs->daemon->views);
    for (struct job_view *view = runs->daemon->views.jobs; view; view = view->hh.next)
        if (view->state == JOB_PLACED || view->state == JOB_RUNNING || view->state == JOB_STOPPING)
            reconcile(runs, view);
}

/* ---- Life of the room ---- */

static int open_notify_socket(struct runs *runs, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int on = 1;

    if (strlen(runs->notify_path) >= sizeof address.sun_path)
        return error_set(err, ENAMETOOLONG, "the state directory's path is too long for a socket: '%s' has more than %zu "
                         "characters; choose a shorter one", runs->notify_path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, runs->notify_path, strlen(runs->notify_path) + 1);
    unlink(runs->notify_path); /* ours: the state directory is locked */
    runs->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (runs->notify_fd < 0 || setsockopt(runs->notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
        bind(runs->notify_fd, (struct sockaddr *)&address, sizeof address) < 0)
        return error_set(err, errno, "cannot make the socket '%s': %s", runs->notify_path, strerror(errno));
    return 0;
}

/* Beside the socket, which jobs can reach; the state directory they cannot. */
static int make_scripts(struct runs *runs, struct error *err)
{
    int rc = file_make_dirs(runs->scripts, geteuid() == 0 ? 0755 : 0700, err); /* as that of the socket */
    struct stat st;

    if (rc)
        return rc;
    if (lstat(runs->scripts, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || chmod(runs->scripts, 0711) < 0)
        return error_set(err, EPERM, "the directory '%s', for the scripts of jobs, is not this user's: remove it",
                         runs->scripts);
    return 0;
}

int runs_new(struct daemon *daemon, struct runs **result, struct error *err)
{
    struct runs *runs = xcalloc(1, sizeof *runs);
    int status;

    runs->daemon = daemon;
    runs->notify_fd = -1;
    runs->directory = xasprintf("%s/runs", daemon->config.state_directory);
    runs->notify_path = xasprintf("%s/notify", daemon->config.state_directory);
    runs->shepherd_path = install_path("lib/carma/carma-shepherd");
    runs->scripts = xasprintf("%s.scripts", daemon->config.socket);
    status = file_make_dirs(runs->directory, 0700, err);
    if (status == 0)
        status = make_scripts(runs, err);
    if (status == 0)
        status = open_notify_socket(runs, err);
    if (status != 0) {
        runs_free(runs);
        return status;
    }
    runs->notify_poll = xmalloc(sizeof *runs->notify_poll);
    uv_poll_init(daemon->loop, runs->notify_poll, runs->notify_fd);
    runs->notify_poll->data = runs;
    uv_poll_start(runs->notify_poll, UV_READABLE, on_notified);
    runs->look = xmalloc(sizeof *runs->look);
    uv_timer_init(daemon->loop, runs->look);
    runs->look->data = runs;
    uv_timer_start(runs->look, on_look, LOOK_WALL_MS, LOOK_WALL_MS);
    runs->prepare = xmalloc(sizeof *runs->prepare);
    uv_timer_init(daemon->loop, runs->prepare);
    runs->prepare->data = runs;
    uv_timer_start(runs->prepare, on_prepare, PREPARE_WALL_MS, 0);
    *result = runs;
    return 0;
}

void runs_free(struct runs *runs)
{
    if (!runs)
        return;
    if (runs->notify_poll)
        uv_close((uv_handle_t *)runs->notify_poll, free_handle);
    if (runs->look)
        uv_close((uv_handle_t *)runs->look, free_handle);
    if (runs->prepare)
        uv_close((uv_handle_t *)runs->prepare, free_handle);
    drop_early(runs);
    spawn_unprepare();
    close_fd(&runs->notify_fd);
    for (struct run *run = runs->first, *next; run; run = next) {
        next = run->next;
        run_free(run);
    }
    free(runs->directory);
    free(runs->scripts);
    free(runs->shepherd_path);
    free(runs->notify_path);
    free(runs);
}
