/* A job's view follows its records, and the core where a snapshot stands for them. */
#include <inttypes.h>

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

void views_take_job(struct views *views, const struct core *core, struct job_view *view, const struct job *job)
{
    const struct record_submitted wants = job_submitted(job);

    set_state(views, view, job->state);
    core_shown(core, job->id, &view->shown);
    job_view_set_wants(view, &wants);
    view->submitted_ns = job->submitted_ns;
    view->retry = job->retry;
    view->reserved_bytes = view->first_reserved_bytes = job->reserved_bytes;
    view->reservation_source = view->first_reservation_source = job->reservation_source;
    view->process_limit_bytes = job->fence_bytes;
    view->overuser = view->victim_of = job->overuser;
    view->share = job->share;
    view->started_ns = view->first_started_ns = job_state_runs(job->state) ? job->placed_ns : -1;
    view->placement_count = job->placement_count;
    free(view->placements);
    view->placements = xcalloc(job->placement_count ? job->placement_count : 1, sizeof *view->placements);
    for (uint32_t i = 0; i < job->placement_count; i++)
        view->placements[i] =
            (struct job_placement){.gpu = job->placements[i].gpu, .observed_bytes = job->placements[i].observed_bytes};
    job_view_change(view);
    views_touch(views, view);
}

/* The store had the view as of this record, or a later one. */
static bool has_it(const struct views *views, const struct job_view *view)
{
    return view->as_of && views->seq <= view->as_of;
}

static void fold_memory(struct job_view *view, const struct record_memory *memory)
{
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (view->placements[i].gpu == memory->gpu && memory->bytes > view->placements[i].observed_bytes)
            view->placements[i].observed_bytes = memory->bytes;
    if (memory->bytes > view->peak_bytes)
        view->peak_bytes = memory->bytes;
}

static void fold_placed(struct job_view *view, const struct record_placed *placed, int64_t at_ns)
{
    if (view->crashed_ns >= 0)
        view->relaunch_ns = at_ns - view->crashed_ns;
    view->crashed_ns = -1;
    view->retry = placed->retry;
    view->reserved_bytes = placed->reserved_bytes;
    view->process_limit_bytes = placed->fence_bytes;
    view->uuids_why = UUIDS_NOT_ASKED;
    view->moved_for = 0;
    view->reservation_source =
        record_memory_source(placed->reservation_source, placed->reserved_bytes, view->wants, SOURCE_LEARNED);
    if (view->attempts++ == 0) {
        view->first_reserved_bytes = view->reserved_bytes;
        view->first_reservation_source = view->reservation_source;
    }
    view->started_ns = -1;
    view->share = placed->share;
    view->placement_count = placed->count;
    view->placements = xrealloc(view->placements, placed->count, sizeof *view->placements);
    for (uint32_t i = 0; i < placed->count; i++)
        view->placements[i] = (struct job_placement){.gpu = placed->gpus[i]};
}

static int64_t running_gpu_ns(const struct job_view *view, int64_t until_ns)
{
    return job_state_runs(view->state) && view->started_ns >= 0 && until_ns > view->started_ns
               ? (int64_t)view->placement_count * (until_ns - view->started_ns)
               : 0;
}

int64_t job_view_gpu_ns(const struct job_view *view, int64_t now_ns)
{
    return view->ran_gpu_ns + running_gpu_ns(view, view->seen_ns < now_ns ? view->seen_ns : now_ns);
}

/* The job was run out of memory by another: both are told of it. */
static void fold_overuser(struct views *views, struct job_view *view, uint64_t overuser)
{
    struct job_view *other = overuser ? views_find(views, overuser) : NULL;

    view->overuser = overuser;
    view->harmed += overuser != 0;
    if (overuser)
        view->victim_of = overuser;
    if (!other || has_it(views, other))
        return;
    other->victims++;
    job_view_change(other);
    views_touch(views, other);
}

static void fold_reservation(struct job_view *view, const struct record_shrunk *reservation)
{
    view->reserved_bytes = reservation->reserved_bytes;
    view->reservation_source = reservation->reservation_source;
}

/* Of one that waits; the reservation of one that runs follows in a record of its own. */
static void fold_estimated(struct job_view *view, const struct record_estimated *estimated)
{
    struct record_submitted wants = job_view_wants(view);

    wants.request_bytes = estimated->request_bytes;
    wants.request_source = SOURCE_ESTIMATED;
    if (estimated->smact_permille >= 0)
        wants.smact_permille = estimated->smact_permille;
    job_view_set_wants(view, &wants);
    if (view->attempts)
        return;
    view->reserved_bytes = view->first_reserved_bytes = estimated->request_bytes;
    view->reservation_source = view->first_reservation_source = SOURCE_ESTIMATED;
}

static void fold_edited(struct job_view *view, const struct record_edited *edited)
{
    struct record_submitted before = job_view_wants(view), wants = edited->wants;

    memcpy(wants.workload, before.workload, sizeof wants.workload);
    job_view_set_wants(view, &wants);
    if (view->attempts)
        return;
    view->reserved_bytes = view->first_reserved_bytes = wants.request_bytes;
    view->reservation_source = view->first_reservation_source = wants.request_source;
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
    uint32_t state;

    if (!view || has_it(views, view) || (state = job_state_after(view->state, record)) == JOB_STATE_COUNT)
        return NULL;
    if (!job_state_runs(state)) {
        view->ran_gpu_ns += running_gpu_ns(view, record->at_ns);
        view->unused_since_ns = -1;
        memory_usage_end(&view->held, record->at_ns);
        free(view->progress);
        view->progress = NULL;
    }
    switch (record->type) {
    case RECORD_SUBMITTED:
        job_view_set_wants(view, &record->submitted);
        view->reserved_bytes = view->first_reserved_bytes = record->submitted.request_bytes;
        view->reservation_source = view->first_reservation_source = record->submitted.request_source;
        view->submitted_ns = record->at_ns;
        break;
    case RECORD_ESTIMATED:
        fold_estimated(view, &record->estimated);
        break;
    case RECORD_EDITED:
        fold_edited(view, &record->edited);
        break;
    case RECORD_PLACED:
        fold_placed(view, &record->placed, record->at_ns);
        break;
    case RECORD_STARTED:
        view->started_ns = record->at_ns;
        if (view->first_started_ns < 0)
            view->first_started_ns = record->at_ns;
        memory_usage_begin(&view->held, record->at_ns);
        break;
    case RECORD_FIRST_USE:
    case RECORD_OBSERVED:
        fold_memory(view, &record->memory);
        break;
    case RECORD_MOVED:
        view->moved_for = record->moved.slowed;
        view->moved_slowed_permille = (uint32_t)record->moved.slowed_permille;
        view->moved_bound_permille = (uint32_t)record->moved.bound_permille;
        break;
    case RECORD_SHRUNK:
        fold_reservation(view, &record->shrunk);
        break;
    case RECORD_GROWN:
        fold_reservation(view, &record->grown);
        break;
    case RECORD_EXPIRED:
        if (view->wants->deadline_ns)
            job_view_set_message(view, "it could not end before its deadline any more");
        break;
    case RECORD_EXITED:
        view->exited = true;
        view->exit = record->exited;
        view->exit.cause = verdict_of(&record->exited).cause;
        view->moves += view->moved_for && view->exit.cause == EXIT_TIMEOUT;
        view->overuser = 0;
        view->unfenced = 0;
        view->crashes +=
            state == JOB_CRASHED && (view->exit.cause == EXIT_GPU_OOM || view->exit.cause == EXIT_GPU_HANDLE);
        view->handle_crashes += state == JOB_CRASHED && view->exit.cause == EXIT_GPU_HANDLE;
        break;
    case RECORD_LOST: /* how it ended nobody knows */
        view->exited = true;
        view->exit = (struct record_exited){.cause = EXIT_LOST,
                                            .status = -1,
                                            .requested_bytes = -1,
                                            .free_bytes = -1,
                                            .used_bytes = -1,
                                            .failed_gpu = RECORD_NO_GPU};
        break;
    case RECORD_REQUEUED:
        view->retry = record->requeued.retry;
        view->retries += view->retry;
        fold_overuser(views, view, record->requeued.overuser);
        view->unfenced = record->requeued.unfenced;
        view->harmed += view->unfenced;
        break;
    case RECORD_REFUSED:
        fold_refused(views, view, record->refused.on);
        break;
    case RECORD_RETURNED:
        view->reserved_bytes = record->returned.reserved_bytes;
        view->reservation_source = record->returned.reservation_source;
        fold_overuser(views, view, record->returned.overuser);
        break;
    default:
        break;
    }
    if (core)
        core_shown(core, view->id, &view->shown);
    if (view->state == JOB_REQUEUING && state == JOB_QUEUED)
        job_view_set_message(view, NULL); /* it would be of the run that was stopped */
    if (state == JOB_CRASHED && view->state != JOB_CRASHED)
        view->crashed_ns = record->at_ns;
    if (state != view->state && job_state_ended(state)) {
        view->ended_ns = record->at_ns;
        job_view_forget_inputs(view);
    }
    set_state(views, view, state);
    job_view_change(view);
    views_touch(views, view);
    return view;
}
