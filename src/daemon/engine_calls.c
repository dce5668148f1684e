#include "daemon/engine_calls.h"

#include "base/memory.h"
#include "daemon/account/past_runs.h"
#include "daemon/account/totals.h"
#include "daemon/capture/captures.h"
#include "daemon/forgetting.h"
#include "daemon/lease/leases.h"
#include "daemon/node/node.h"
#include "daemon/run/run_verbs.h"
#include "daemon/view/view_store.h"
#include "store/history.h"
#include "store/store.h"

static void feed_samples(struct daemon *daemon)
{
    node_feed_samples(daemon->node);
}

static bool fold(struct daemon *daemon, const struct record *record)
{
    struct job_view *view = views_fold(&daemon->views, daemon->core, record);
    struct store_history row;

    if (record->type == RECORD_FORGOTTEN)
        past_runs_forget(daemon->past_runs, record->forgotten.of_user, record->forgotten.uid,
                         record->forgotten.workload);
    if (record->type == RECORD_SUBMITTED)
        captures_consider(daemon->captures, record->job);
    if (!view || !job_state_ended(view->state))
        return false;
    captures_drop(daemon->captures, record->job);
    if (view->withdrawn) {
        views_remove(&daemon->views, view);
        return true;
    }
    totals_end(daemon->totals, view);
    view->activity_permille = core_observed_activity(daemon->core, view->wants->uid, job_view_workload(view));
    row = history_row_of(view);
    past_runs_end(daemon->past_runs, &row);
    return true;
}

static void show(struct daemon *daemon, uint64_t job)
{
    struct job_view *view = views_find(&daemon->views, job);

    if (view && view->hidden && !view->withdrawn)
        views_show(&daemon->views, view);
}

/* A lease is shown at once: its end is its answer. */
static bool withdraw(struct daemon *daemon, uint64_t job)
{
    struct job_view *view = views_find(&daemon->views, job);

    if (!view || !view->hidden)
        return false;
    captures_drop(daemon->captures, job);
    view->withdrawn = true;
    if (job_state_ended(view->state))
        views_remove(&daemon->views, view);
    return true;
}

static void follow_residents(struct daemon *daemon)
{
    node_follow_residents(daemon->node);
    leases_look(daemon->leases);
}

static void begin_early(struct daemon *daemon, const struct record *placed)
{
    runs_begin_early(daemon->runs, placed);
}

static void act(struct daemon *daemon, const struct record *record)
{
    run_verbs_act(daemon->runs, record);
}

static void store_view(struct store_batch *batch, const struct job_view *view)
{
    CLEANUP(free_ptr) char *text = job_view_to_text(view);

    store_batch_job(batch, view->id, view->wants->uid, view->ended_ns, text);
    if (job_state_ended(view->state)) {
        struct store_history row = history_row_of(view);
        store_batch_history(batch, &row);
    }
}

static void store_ended(struct daemon *daemon, struct store_batch *batch, uint64_t job)
{
    const struct job_view *view = views_find(&daemon->views, job);

    if (!view) { /* it was withdrawn */
        store_batch_drop_spec(batch, job);
        return;
    }
    store_view(batch, view);
    store_batch_drop_environment(batch, job); /* nobody starts it again */
}

/* Ended jobs too: an earlier carma did not store their history when they ended. */
static void store_changed(struct daemon *daemon, struct store_batch *batch)
{
    for (struct job_view *view = daemon->views.jobs; view; view = view->hh.next)
        if (job_view_is_changed(view) && !view->withdrawn)
            store_view(batch, view);
}

static void changed_taken(struct daemon *daemon)
{
    daemon->views.stored = ++daemon->views.taken;
}

static void changed_stored(struct daemon *daemon, bool stored, int64_t forgotten_before_ns)
{
    if (stored)
        forgetting_begin(daemon->forgetting, forgotten_before_ns);
    else
        daemon->views.stored = 0; /* all that ever changed */
}

const struct engine_calls engine_calls = {
    .ends = feed_samples,
    .applied = fold,
    .submitted = show,
    .withdrawn = withdraw,
    .decided = follow_residents,
    .placed = begin_early,
    .stored = act,
    .store_ended = store_ended,
    .store_changed = store_changed,
    .changed_taken = changed_taken,
    .changed_stored = changed_stored,
};
