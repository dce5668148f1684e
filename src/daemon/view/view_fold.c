/* How this file works: views_fold takes from the core what that knows of the record's job (take_job), and folds the
 * record into the rest, which the core does not have, or has in another meaning (view_fields.def). */
#include <stdio.h>

#include "base/memory.h"
#include "core/learn/learn.h"
#include "core/verdict.h"
#include "daemon/view/view.h"

static void set_state(struct views *views, struct job_view *view, uint32_t state)
{
    if (job_view_is_shown(view))
        views->counts[view->state]--;
    view->state = state;
    if (job_view_is_shown(view))
        views->counts[state]++;
}

static void take_placements(struct job_view *view, const struct job *job)
{
    if (view->placement_count != job->placement_count)
        view->placements = xrealloc(view->placements, job->placement_count, sizeof *view->placements);
    view->placement_count = job->placement_count;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        view->placements[i] = job->placements[i];
        if (job->placements[i].observed_bytes > view->run->peak_bytes)
            job_view_run(view)->peak_bytes = job->placements[i].observed_bytes;
    }
}

/* What the core knows. What the job had on GPUs stays while it waits for its next run, and once it has ended. */
static void take_job(struct job_view *view, const struct job *job)
{
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title)                                                     \
    IF_JOB_##part(view->member = job->member;)                                                                         \
        IF_RUN_##part(if (job->run->member != view->run->member) job_view_run(view)->member = job->run->member;)
#include "core/job_state.def"
    if (!view->attempts || job_state_has_gpus(job->state)) {
        view->reserved_bytes = job->reserved_bytes;
        view->reservation_source = job->reservation_source;
    }
    if (!view->attempts) {
        view->first_reserved_bytes = job->reserved_bytes;
        view->first_reservation_source = job->reservation_source;
    }
    if (job->placement_count)
        take_placements(view, job);
}

/* Not the workload, which the core does not know of jobs without GPUs. */
static void take_wants(struct job_view *view, const struct job *job)
{
    struct record_submitted wants = *job->wants;

    snprintf(wants.workload, sizeof wants.workload, "%s", job_view_workload(view));
    job_view_set_wants(view, &wants);
}

static void take_run(struct job_view *view, const struct job *job)
{
    struct job_view_run *run = job_view_run(view);

    run->process_limit_bytes = job->run->fence_bytes;
    run->overuser = run->victim_of = job->run->overuser;
    run->share = job->share;
    run->started_ns = run->first_started_ns = job_state_runs(job->state) ? job->placed_ns : -1;
}

void views_take_job(struct views *views, struct job_view *view, const struct job *job)
{
    const struct record_submitted wants = job_submitted(job);

    set_state(views, view, job->state);
    view->placement_count = 0;
    take_job(view, job);
    job_view_set_wants(view, &wants);
    view->reserved_bytes = view->first_reserved_bytes = job->reserved_bytes;
    view->reservation_source = view->first_reservation_source = job->reservation_source;
    if (job->placed_ns || view->run != &view_never_ran)
        take_run(view, job);
    job_view_change(view);
    views_touch(views, view);
}

/* The store had the view as of this record, or a later one. */
static bool has_it(const struct views *views, const struct job_view *view)
{
    return view->as_of && views->seq <= view->as_of;
}

static void fold_placed(struct job_view *view, const struct record_placed *placed, int64_t at_ns)
{
    struct job_view_run *run = job_view_run(view);

    if (run->crashed_ns >= 0)
        run->relaunch_ns = at_ns - run->crashed_ns;
    run->crashed_ns = -1;
    run->process_limit_bytes = placed->fence_bytes;
    run->uuids_why = UUIDS_NOT_ASKED;
    run->moved_for = 0;
    view->attempts++;
    run->started_ns = -1;
    run->share = placed->share;
}

static int64_t running_gpu_ns(const struct job_view *view, int64_t until_ns)
{
    return job_state_runs(view->state) && view->run->started_ns >= 0 && until_ns > view->run->started_ns
               ? (int64_t)view->placement_count * (until_ns - view->run->started_ns)
               : 0;
}

int64_t job_view_gpu_ns(const struct job_view *view, int64_t now_ns)
{
    return view->run->ran_gpu_ns + running_gpu_ns(view, view->run->seen_ns < now_ns ? view->run->seen_ns : now_ns);
}

/* The job was run out of memory by another: both are told of it. */
static void fold_overuser(struct views *views, struct job_view *view, uint64_t overuser)
{
    struct job_view *other = overuser ? views_find(views, overuser) : NULL;
    struct job_view_run *run = job_view_run(view);

    run->overuser = overuser;
    run->harmed += overuser != 0;
    if (overuser)
        run->victim_of = overuser;
    if (!other || has_it(views, other))
        return;
    job_view_run(other)->victims++;
    job_view_change(other);
    views_touch(views, other);
}

static void end_run(struct job_view *view, int64_t at_ns)
{
    struct job_view_run *run = job_view_run(view);

    run->ran_gpu_ns += running_gpu_ns(view, at_ns);
    run->unused_since_ns = -1;
    memory_usage_end(&run->held, at_ns);
    free(run->progress);
    run->progress = NULL;
}

static void fold_started(struct job_view_run *run, int64_t at_ns)
{
    run->started_ns = at_ns;
    if (run->first_started_ns < 0)
        run->first_started_ns = at_ns;
    memory_usage_begin(&run->held, at_ns);
}

static void fold_moved(struct job_view_run *run, const struct record_moved *moved)
{
    run->moved_for = moved->slowed;
    run->moved_slowed_permille = (uint32_t)moved->slowed_permille;
    run->moved_bound_permille = (uint32_t)moved->bound_permille;
}

static void fold_exited(struct job_view_run *run, const struct record_exited *exited, uint32_t state)
{
    run->exited = true;
    run->exit = *exited;
    run->exit.cause = verdict_of(exited).cause;
    run->moves += run->moved_for && run->exit.cause == EXIT_TIMEOUT;
    run->overuser = 0;
    run->unfenced = 0;
    run->crashes += state == JOB_CRASHED && (run->exit.cause == EXIT_GPU_OOM || run->exit.cause == EXIT_GPU_HANDLE);
    run->handle_crashes += state == JOB_CRASHED && run->exit.cause == EXIT_GPU_HANDLE;
}

/* It depended on another in vain, or can never run. */
static void fold_refused(struct views *views, struct job_view *view, uint64_t on)
{
    const struct job_view *other = on ? views_find(views, on) : NULL;
    CLEANUP(free_ptr) char *text = NULL;
    char number[JOB_NUMBER_TEXT];

    if (!on)
        return;
    text = xasprintf("it depended on job %s, which is %s", job_number(views, on, number),
                     other ? job_state_name(other->state) : "gone");
    job_view_set_message(view, text);
}

struct job_view *views_fold(struct views *views, const struct core *core, const struct record *record)
{
    struct job_view *view = record->job ? views_find(views, record->job) : NULL;
    const struct job *job = core && view ? core_recall_job(core, record->job) : NULL;
    struct job_view_run *run;
    uint32_t state;

    if (!view || has_it(views, view) || (state = job_state_after(view->state, record)) == JOB_STATE_COUNT)
        return NULL;
    if (!job_state_runs(state) && view->run != &view_never_ran)
        end_run(view, record->at_ns);
    if (job)
        take_job(view, job);
    switch (record->type) {
    case RECORD_SUBMITTED:
        job_view_set_wants(view, &record->submitted);
        break;
    case RECORD_ESTIMATED:
    case RECORD_EDITED:
        if (job)
            take_wants(view, job);
        break;
    case RECORD_PLACED:
        fold_placed(view, &record->placed, record->at_ns);
        break;
    case RECORD_STARTED:
        fold_started(job_view_run(view), record->at_ns);
        break;
    case RECORD_MOVED:
        fold_moved(job_view_run(view), &record->moved);
        break;
    case RECORD_EXPIRED:
        if (view->wants->deadline_ns)
            job_view_set_message(view, "it could not end before its deadline any more");
        break;
    case RECORD_EXITED:
        fold_exited(job_view_run(view), &record->exited, state);
        break;
    case RECORD_LOST: /* how it ended nobody knows */
        run = job_view_run(view);
        run->exited = true;
        run->exit = (struct record_exited){.cause = EXIT_LOST,
                                           .status = -1,
                                           .requested_bytes = -1,
                                           .free_bytes = -1,
                                           .used_bytes = -1,
                                           .failed_gpu = RECORD_NO_GPU};
        break;
    case RECORD_REQUEUED:
        run = job_view_run(view);
        run->retries += record->requeued.retry;
        fold_overuser(views, view, record->requeued.overuser);
        run->unfenced = record->requeued.unfenced;
        run->harmed += run->unfenced;
        break;
    case RECORD_REFUSED:
        fold_refused(views, view, record->refused.on);
        break;
    case RECORD_RETURNED: /* what the next lease is to ask for */
        view->reserved_bytes = record->returned.reserved_bytes;
        view->reservation_source = record->returned.reservation_source;
        fold_overuser(views, view, record->returned.overuser);
        break;
    default:
        break;
    }
    if (view->state == JOB_REQUEUING && state == JOB_QUEUED)
        job_view_set_message(view, NULL); /* it would be of the run that was stopped */
    if (state == JOB_CRASHED && view->state != JOB_CRASHED)
        job_view_run(view)->crashed_ns = record->at_ns;
    if (state != view->state && job_state_ended(state)) {
        view->ended_ns = record->at_ns;
        job_view_forget_inputs(view);
    }
    set_state(views, view, state);
    job_view_change(view);
    views_touch(views, view);
    return view;
}
