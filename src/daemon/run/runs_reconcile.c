/* The launches that an earlier daemon left: running ones are taken up, the rest is settled. */
#include "daemon/log.h"
#include "daemon/run/runs_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/run/run_directories.h"
#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"

/* Whether nothing is there of a launch that is known to have run. Its shepherd makes a status again that was removed,
 * if it is alive. */
static bool is_missing(const struct job_view *view, const char *directory)
{
    struct launch_status status;

    return (view->state == JOB_RUNNING || view->state == JOB_SUSPENDED) &&
           launch_read_status(directory, &status, NULL) == -ENOENT;
}

static void await_status(struct runs *runs, const struct job_view *view, const char *directory)
{
    struct run *run = runs_add(runs, view, directory, 0, 0);

    run->started = true;
    run->missing_wall_ns = nodetime_monotonic_wall_ns();
    if (mps_jobs_is_for(runs->daemon, view))
        mps_jobs_adopt(runs->daemon->mps_jobs, view);
}

static void reconcile(struct runs *runs, struct job_view *view)
{
    uint32_t tries = runs_tries_of(runs, view);
    CLEANUP(free_ptr) char *directory = runs_directory_of(runs, view, tries ? tries : 1);
    struct launch_status status;
    struct error err;
    struct run *run;

    if (is_missing(view, directory)) {
        await_status(runs, view, directory);
        return;
    }
    if (tries == 0) {
        runs_start_unless_cancelled(runs, view);
        return;
    }
    if (launch_settle(directory, &status, &err) != 0) { /* looked at again: the reason may be lack of space */
        daemon_log("job %" PRIu64 ": %s", view->id, err.text);
        status = (struct launch_status){.phase = LAUNCH_STARTING};
    }
    if (status.phase == LAUNCH_FAILED && status.shepherd == 0) { /* the daemon died before the shepherd began */
        runs_start_unless_cancelled(runs, view);
        return;
    }
    run = runs_add(runs, view, directory, status.shepherd, status.shepherd_start_ticks);
    run->started = view->state != JOB_PLACED && view->run->started_ns >= 0;
    if (mps_jobs_is_for(runs->daemon, view))
        mps_jobs_adopt(runs->daemon->mps_jobs, view);
    if (runs_take_status(runs, run, &status))
        return;
    if (!launch_alive(run->shepherd, run->start_ticks)) {
        runs_handle_dead_shepherd(runs, run);
        return;
    }
    if (status.phase == LAUNCH_RUNNING)
        runs_input(runs, &(struct record){.type = RECORD_ADOPTED, .at_ns = nodetime_now_ns(), .job = view->id});
    if (job_state_stops(view->state))
        runs_stop(runs, view->id);
    else
        runs_tell_again(runs, view);
}

/* A later launch than the stored ones began while its placement was being stored, and its daemon died before that. */
static bool is_known_launch(uint64_t job, uint32_t launch, const void *views)
{
    const struct job_view *view = views_find(views, job);

    return view && (launch <= view->attempts || view->unreadable);
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

    if (!cgroup_prepare(&why)) {
        runs->limits_gap = xstrdup(why.text);
        daemon_log(
            "--memory, --cpus, job_memory_max, job_pids_max and job_cpu_weight limit no job here: %s (carma doctor)",
            why.text);
    }
    cgroup_remove_left();
    try_device_filters(runs);
    run_directories_sweep(runs->directory, is_known_launch, &runs->daemon->views);
    for (struct job_view *view = runs->daemon->views.jobs, *next; view; view = next) {
        next = view->hh.next; /* one that was withdrawn is removed with its end */
        if (job_state_has_gpus(view->state))
            reconcile(runs, view);
    }
}
