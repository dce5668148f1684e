#include "daemon/set_aside.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/run/run_directories.h"
#include "daemon/view/view.h"

#define REMEDY "submit it again, or restore the store from a backup; carma admin verify names the damaged parts"

void set_aside(struct job_view *view, const char *format, ...)
{
    struct error why; /* of bounded length, and one line */
    va_list arguments;

    if (view->unreadable)
        return;
    va_start(arguments, format);
    vsnprintf(why.text, sizeof why.text, format, arguments);
    va_end(arguments);
    error_make_printable(&why);
    view->unreadable = xstrdup(why.text);
}

static bool agrees(const struct job_view *view, const struct job *job)
{
    if (!job)
        return view->state == JOB_STATE_COUNT || job_state_ended(view->state);
    if (job->state != view->state || (job->placement_count && view->placement_count != job->placement_count))
        return false;
    for (uint32_t i = 0; i < job->placement_count; i++)
        if (view->placements[i].gpu != job->placements[i].gpu)
            return false;
    return true;
}

/* How often it was launched is in the names of its run directories. */
static void take_from_core(struct daemon *daemon, struct job_view *view, const struct job *job)
{
    CLEANUP(free_ptr) char *runs = xasprintf("%s/runs", daemon->config.state_directory);
    uint32_t last = run_directories_last(runs, view->id);

    views_take_job(&daemon->views, view, job);
    if (last > view->attempts)
        view->attempts = last;
    if (view->attempts == 0 && job->placed_ns > 0)
        view->attempts = 1;
}

void set_aside_what_disagrees(struct daemon *daemon)
{
    struct views *views = &daemon->views;

    for (const struct job *job = core_jobs(daemon->core); job; job = job->hh.next)
        if (!views_find(views, job->id))
            set_aside(views_add_unknown(views, job->id), "its submission is missing");
    for (struct job_view *view = views->jobs; view; view = view->hh.next) {
        const struct job *job = core_find_job(daemon->core, view->id);

        if (agrees(view, job))
            continue;
        if (!view->withdrawn) /* which has no row of its state */
            set_aside(view, "its stored state does not follow from its records");
        if (job)
            take_from_core(daemon, view, job);
        else
            views_hide(views, view);
    }
}

static void take_out(struct daemon *daemon, struct job_view *view)
{
    struct record cancelled = {.type = RECORD_CANCELLED, .at_ns = nodetime_now_ns(), .job = view->id};
    struct error err;

    if (engine_input(daemon->engine, &cancelled, &err) != 0)
        daemon_log("job %" PRIu64 ": %s", view->id, err.text);
}

void set_aside_from_queue(struct daemon *daemon)
{
    for (struct job_view *view = daemon->views.jobs, *next; view; view = next) {
        bool has_gpus = job_state_has_gpus(view->state);
        CLEANUP(free_ptr) char *message = NULL;

        next = view->hh.next;
        if (view->withdrawn && core_find_job(daemon->core, view->id)) { /* and removed with its end */
            take_out(daemon, view);
            continue;
        }
        if (!view->unreadable || (view->state < JOB_STATE_COUNT && job_state_ended(view->state)))
            continue;
        if (view->state >= JOB_STATE_COUNT) {
            daemon_log("job %" PRIu64 " has ended and is not shown: %s; restore the store from a backup to see it",
                       view->id, view->unreadable);
            continue;
        }
        message = xasprintf("set aside%s: %s: %s", has_gpus ? ", and not started again" : "", view->unreadable, REMEDY);
        job_view_set_message(view, message);
        daemon_log("job %" PRIu64 " is %s", view->id, message);
        if (!has_gpus)
            take_out(daemon, view);
    }
}
