#include "daemon/engine/keeper.h"

#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "core/snapshot.h"
#include "daemon/account/totals.h"
#include "daemon/run/runs.h"
#include "daemon/view/view_store.h"
#include "store/store.h"

/* A snapshot is due after this many records, and after twice as many as its own: then the log is never much longer than
 * the state, and snapshots never cost much more than the log. */
#define RECORDS_AT_LEAST 250

/* Of the retention: how far apart the snapshots are that the log may begin with when its older part is forgotten. */
#define SPACINGS 10

/* Rows of the accounting that a snapshot forgets at most, and one more for each record since the one before: more than jobs
 * can have ended meanwhile, or with a long queue, where snapshots are far apart, the history would grow for ever. */
#define HISTORY_AT_ONCE 1000

struct keeper {
    struct daemon *daemon;
    size_t records;   /* since the last snapshot */
    size_t last_size; /* of the last snapshot, in records */
    int64_t before_ns; /* jobs that ended before are forgotten with it */
    bool under_way;
};

struct keeper *keeper_new(struct daemon *daemon)
{
    struct keeper *keeper = xcalloc(1, sizeof *keeper);

    keeper->daemon = daemon;
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    free(keeper);
}

static void add_changed_views(struct views *views, struct store_batch *batch)
{
    for (struct job_view *view = views->jobs; view; view = view->hh.next) {
        CLEANUP(free_ptr) char *text = NULL;

        if (!view->changed)
            continue;
        text = job_view_to_text(view);
        store_batch_job(batch, view->id, view->ended_ns, text);
        if (job_state_ended(view->state)) { /* which an earlier carma did not do when it ended */
            struct store_history row = history_row_of(view);
            store_batch_history(batch, &row);
        }
        view->changed = false;
    }
}

static void forget_run(const struct job_view *view, void *user)
{
    const struct daemon *daemon = user;

    runs_forget(daemon->runs, view);
}

static void on_stored(int status, const char *error, void *user)
{
    struct keeper *keeper = user;

    (void)error; /* the batch before it has the same trouble, and tells it */
    keeper->under_way = false;
    if (status == 0)
        views_forget(&keeper->daemon->views, KEEPER_MOST_ENDED, keeper->before_ns, forget_run, keeper->daemon);
    for (struct job_view *view = keeper->daemon->views.jobs; view && status != 0; view = view->hh.next)
        view->changed = true;
}

static void snapshot(struct keeper *keeper)
{
    CLEANUP(record_list_release) struct record_list state = {0};
    struct daemon *daemon = keeper->daemon;
    struct store_batch *batch = store_batch_new();
    int64_t now_ns = nodetime_now_ns(), retention_ns = daemon->config.retention_ns;
    int64_t history_ns = daemon->config.history_retention_ns;

    core_snapshot(daemon->core, now_ns, &state);
    add_changed_views(&daemon->views, batch);
    store_batch_snapshot(batch, now_ns, retention_ns / SPACINGS, &state);
    keeper->before_ns = now_ns - retention_ns;
    store_batch_forget(batch, keeper->before_ns);
    store_batch_forget_history(batch, now_ns - (history_ns > retention_ns ? history_ns : retention_ns),
                               (uint32_t)(HISTORY_AT_ONCE + keeper->records));
    keeper->last_size = state.count;
    keeper->records = 0;
    keeper->under_way = true;
    store_commit(daemon->store, batch, on_stored, keeper);
}

void keeper_loaded(struct keeper *keeper, const struct record *record)
{
    if (record_is_state(record->type))
        keeper->last_size++;
    else
        keeper->records++;
}

void keeper_count(struct keeper *keeper, size_t records)
{
    keeper->records += records;
    if (!keeper->under_way && keeper->records >= RECORDS_AT_LEAST && keeper->records >= 2 * keeper->last_size)
        snapshot(keeper);
}
