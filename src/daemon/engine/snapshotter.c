#include "daemon/engine/snapshotter.h"

#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "core/snapshot.h"
#include "daemon/engine/engine.h"
#include "store/history.h"
#include "store/store.h"

/* A snapshot is due after this many records, and after twice as many as its own. So the log is never much longer than
 * the state, and snapshots never cost much more than the log. */
#define RECORDS_AT_LEAST 250

/* Of the retention: how far apart the snapshots are that the log may begin with when its older part is forgotten. */
#define SPACINGS 10

/* Rows of the accounting that a snapshot forgets at most, and one more for each record since the one before. That is
 * more than jobs can have ended meanwhile. With a long queue, where snapshots are far apart, the history would
 * otherwise grow for ever.
 */
#define HISTORY_AT_ONCE 1000

struct snapshotter {
    struct daemon *daemon;
    const struct engine_calls *calls; /* borrowed */
    size_t records;                   /* since the last snapshot */
    size_t last_size;                 /* of the last snapshot, in records */
    int64_t before_ns;                /* jobs that ended before are forgotten with it */
    bool under_way;
};

struct snapshotter *snapshotter_new(struct daemon *daemon, const struct engine_calls *calls)
{
    struct snapshotter *snapshotter = xcalloc(1, sizeof *snapshotter);

    snapshotter->daemon = daemon;
    snapshotter->calls = calls;
    return snapshotter;
}

void snapshotter_free(struct snapshotter *snapshotter)
{
    free(snapshotter);
}

static void on_stored(int status, const char *error, void *user)
{
    struct snapshotter *snapshotter = user;

    (void)error; /* the batch before it has the same trouble, and tells it */
    snapshotter->under_way = false;
    snapshotter->calls->changed_stored(snapshotter->daemon, status == 0, snapshotter->before_ns);
}

static void snapshot(struct snapshotter *snapshotter)
{
    CLEANUP(record_list_release) struct record_list state = {0};
    struct daemon *daemon = snapshotter->daemon;
    struct store_batch *batch = store_batch_new();
    int64_t now_ns = nodetime_now_ns(), retention_ns = daemon->config.retention_ns;
    int64_t history_ns = daemon->config.history_retention_ns;

    core_snapshot(daemon->core, now_ns, &state);
    snapshotter->calls->store_changed(daemon, batch);
    store_batch_snapshot(batch, now_ns, retention_ns / SPACINGS, &state);
    snapshotter->before_ns = now_ns - retention_ns;
    store_batch_forget(batch, snapshotter->before_ns);
    store_batch_forget_history(batch, now_ns - (history_ns > retention_ns ? history_ns : retention_ns),
                               (uint32_t)(HISTORY_AT_ONCE + snapshotter->records));
    snapshotter->last_size = state.count;
    snapshotter->records = 0;
    snapshotter->under_way = true;
    store_commit(daemon->store, batch, on_stored, snapshotter);
}

void snapshotter_loaded(struct snapshotter *snapshotter, const struct record *record)
{
    if (record_is_state(record->type))
        snapshotter->last_size++;
    else
        snapshotter->records++;
}

void snapshotter_count(struct snapshotter *snapshotter, size_t records)
{
    snapshotter->records += records;
    if (!snapshotter->under_way && snapshotter->records >= RECORDS_AT_LEAST &&
        snapshotter->records >= 2 * snapshotter->last_size)
        snapshot(snapshotter);
}
