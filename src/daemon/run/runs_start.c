/* Starting and stopping jobs. */
#include "daemon/log.h"
#include "daemon/run/runs_internal.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/node/node.h"
#include "daemon/run/run_request.h"
#include "launch/spawn_shepherd.h"

void runs_on_prepare(uv_timer_t *timer)
{
    const struct runs *runs = timer->data;

    spawn_prepare(runs->shepherd_path, runs->directory, NULL); /* a failure is reported by the next job's start */
}

/* Leaves the job without a shepherd: when it is looked at next, it is begun again. */
static void retry_later(struct runs *runs, const struct job_view *view, const char *directory, const char *why)
{
    mps_jobs_leave(runs->daemon->mps_jobs, view->id);
    if (!runs->start_failed)
        daemon_log("job %" PRIu64 " waits until it can be started: %s", view->id, why);
    runs->start_failed = true;
    runs_add(runs, view, directory, 0, 0)->retry_later = true;
}

/* The job was started with it; a later configuration does not change it. */
static void show_start(struct runs *runs, uint64_t job, int64_t limit_bytes, enum uuids_why why)
{
    struct job_view *view = views_find(&runs->daemon->views, job);

    if (view->run->process_limit_bytes == limit_bytes && view->run->uuids_why == why)
        return;
    job_view_run(view)->process_limit_bytes = limit_bytes;
    job_view_run(view)->uuids_why = why;
    job_view_change(view);
    views_touch(&runs->daemon->views, view);
}

static int begin(struct runs *runs, const struct job_view *view, const char *directory, const char *mps_pipe_directory,
                 const char *mps_log_directory, struct launch_begun *begun, struct error *err)
{
    CLEANUP(free_ptr) char *script = runs_script_directory_of(runs, directory);
    struct launch_request request = {.shepherd = runs->shepherd_path,
                                     .run_directory = directory,
                                     .script_directory = script,
                                     .mps_pipe_directory = mps_pipe_directory,
                                     .mps_log_directory = mps_log_directory,
                                     .notify_socket = runs->notify_path};
    enum uuids_why why;
    int code = run_request_begin(runs->daemon, view, runs->filters_devices, &request, begun, &why, err);

    show_start(runs, view->id, mps_pipe_directory ? request.mps_memory_limit_bytes : -1, why);
    return code;
}

static void let_go(struct runs *runs, const struct job_view *view, const char *directory, struct launch_begun *begun)
{
    launch_go(begun);
    uv_timer_start(runs->prepare, runs_on_prepare, PREPARE_WALL_MS, 0);
    runs->start_failed = false;
    runs_add(runs, view, directory, begun->shepherd, begun->start_ticks);
}

static void start(struct runs *runs, const struct job_view *view, const char *mps_pipe_directory,
                  const char *mps_log_directory)
{
    CLEANUP(free_ptr) char *directory = runs_directory_of(runs, view, runs_tries_of(runs, view) + 1);
    struct launch_begun begun;
    struct error err;
    int code;

    if (runs->filters_devices && !node_was_read(runs->daemon->node, view)) {
        retry_later(runs, view, directory,
                    "its GPUs have not been read yet, so it is not known which device nodes are theirs");
        return;
    }
    code = begin(runs, view, directory, mps_pipe_directory, mps_log_directory, &begun, &err);
    if (code == 0) {
        let_go(runs, view, directory, &begun);
    } else if (error_is_passing(code)) {
        retry_later(runs, view, directory, err.text);
    } else {
        mps_jobs_leave(runs->daemon->mps_jobs, view->id);
        runs_feed_launch_failed(runs, view->id, err.text);
    }
}

/* ---- A start that has begun before its placement is stored ---- */

void runs_drop_early(struct runs *runs)
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

    if (early->job || !spawn_waiting() || view->unreadable || mps_jobs_is_for(runs->daemon, view) ||
        (runs->filters_devices && !node_was_read(runs->daemon->node, view)))
        return; /* it begins once it is stored, as do all but one at a time */
    early->directory = runs_directory_of(runs, view, runs_tries_of(runs, view) + 1);
    if (begin(runs, view, early->directory, NULL, NULL, &early->begun, NULL) == 0) {
        early->job = view->id;
        early->launch = view->attempts;
    } else {
        free_ptr(&early->directory);
    }
}

/* Whether the job was begun early, and now runs. */
static bool go_on(struct runs *runs, const struct job_view *view)
{
    struct early *early = &runs->early;

    if (early->job != view->id || early->launch != view->attempts)
        return false;
    let_go(runs, view, early->directory, &early->begun);
    free_ptr(&early->directory);
    early->job = 0;
    return true;
}

static const char *stopped_early(const struct job_view *view)
{
    return view->state == JOB_REQUEUING ? "requeued before it was started" : "cancelled before it was started";
}

static void on_mps_ready(struct daemon *daemon, uint64_t job, const char *pipe_directory, const char *log_directory,
                         const struct error *err)
{
    const struct job_view *view = views_find(&daemon->views, job);

    if (!pipe_directory)
        runs_feed_launch_failed(daemon->runs, job, job_state_stops(view->state) ? stopped_early(view) : err->text);
    else
        start(daemon->runs, view, pipe_directory, log_directory);
}

/* A job that was cancelled while its placement was being stored, or its daemon away, is not begun: nothing would stop
 * it. */
void runs_start_unless_cancelled(struct runs *runs, const struct job_view *view)
{
    if (job_state_stops(view->state)) {
        if (runs->early.job == view->id)
            runs_drop_early(runs);
        runs_feed_launch_failed(runs, view->id, stopped_early(view));
    } else if (view->unreadable) {
        runs_feed_launch_failed(runs, view->id, view->unreadable);
    } else if (mps_jobs_is_for(runs->daemon, view)) {
        mps_jobs_join(runs->daemon->mps_jobs, view, on_mps_ready);
    } else if (!go_on(runs, view)) {
        start(runs, view, NULL, NULL);
    }
}

void runs_start(struct runs *runs, const struct record *placed)
{
    runs_start_unless_cancelled(runs, views_find(&runs->daemon->views, placed->job));
}

void runs_stop_shepherd(struct daemon *daemon, uint64_t job)
{
    struct run *run = runs_run_of(daemon->runs, job);
    struct error err;

    if (!run)
        return;
    if (launch_stop(run->shepherd, run->start_ticks, &err) == 0) {
        runs_told(run);
        return;
    }
    if (launch_alive(run->shepherd, run->start_ticks)) {
        daemon_log("job %" PRIu64 " could not be stopped: %s", job, err.text);
        runs_input(daemon->runs,
                   &(struct record){.type = RECORD_SIGNAL_FAILED, .at_ns = nodetime_now_ns(), .job = job});
    } /* else it has just ended, or will be found lost */
}

void runs_stop(struct runs *runs, uint64_t job)
{
    struct daemon *daemon = runs->daemon;

    if (mps_jobs_is_waiting(daemon->mps_jobs, job)) {
        mps_jobs_leave(daemon->mps_jobs, job);
        runs_feed_launch_failed(runs, job, stopped_early(views_find(&daemon->views, job)));
    } else {
        mps_jobs_terminate(daemon->mps_jobs, job, runs_stop_shepherd);
    }
}
