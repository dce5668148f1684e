#include "daemon/engine/snapshotter.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "core/snapshot.h"
#include "daemon/engine/copied.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "store/history.h"
#include "store/store.h"

/* A snapshot is due after this many records, and after twice as many as its own. So the log is never much longer than
 * the state, and snapshots never cost much more than the log. */
#define RECORDS_AT_LEAST 250

/* Of the retention: how far apart the snapshots are that the log may begin with when its older part is forgotten. */
#define SPACINGS 10

/* Rows that are forgotten at once, with the snapshot and after it, until all that is old is forgotten: others' commits
 * wait no longer. */
#define FORGOTTEN_AT_ONCE 200

/* A snapshot of so few records is made on the loop, in some milliseconds. A larger one would hold up everybody: a copy
 * of the process makes it, as of the moment of the copy, and it is committed bit by bit, with others' commits in
 * between. */
#define FEW_RECORDS 500

struct snapshotter {
    struct daemon *daemon;
    const struct engine_calls *calls; /* borrowed */
    size_t records;                   /* since the last snapshot */
    size_t last_size;                 /* of the last snapshot, in records */
    int64_t now_ns;                   /* of the snapshot under way */
    int64_t before_ns;                /* jobs that ended before are forgotten with it */
    bool under_way;
    bool failed;           /* the last one; all jobs are in the next */
    struct copied *copied; /* NULL: none */
    int fd;                /* of its result */
    bool marked, copy_made;
    bool no_copy; /* the last copy failed: the next snapshot is made here */
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
    if (snapshotter)
        copied_free(snapshotter->copied);
    free(snapshotter);
}

static void end(struct snapshotter *snapshotter, bool stored)
{
    copied_free(snapshotter->copied);
    snapshotter->copied = NULL;
    snapshotter->under_way = false;
    snapshotter->failed = !stored;
    snapshotter->calls->changed_stored(snapshotter->daemon, stored, snapshotter->before_ns);
}

static void forget_some(struct snapshotter *snapshotter, struct store_batch *batch)
{
    const struct config *config = &snapshotter->daemon->config;
    int64_t history_ns = config->history_retention_ns, retention_ns = config->retention_ns;

    store_batch_forget(batch, snapshotter->before_ns, FORGOTTEN_AT_ONCE);
    store_batch_forget_history(batch, snapshotter->now_ns - (history_ns > retention_ns ? history_ns : retention_ns),
                               FORGOTTEN_AT_ONCE);
}

/* The snapshot is stored, and some of what is old is forgotten. */
static void on_stored(int status, const char *error, void *user)
{
    struct snapshotter *snapshotter = user;
    struct store *store = snapshotter->daemon->store;
    struct store_batch *batch;

    (void)error; /* the batch before it has the same trouble, and tells it */
    if (status != 0 || !store_has_more_to_forget(store)) {
        end(snapshotter, status == 0);
        return;
    }
    batch = store_batch_new();
    forget_some(snapshotter, batch);
    store_commit(store, batch, on_stored, snapshotter);
}

/* Its size in records. */
static size_t make(struct snapshotter *snapshotter, struct store_batch *batch)
{
    CLEANUP(record_list_release) struct record_list state = {0};
    struct daemon *daemon = snapshotter->daemon;

    core_snapshot(daemon->core, snapshotter->now_ns, &state);
    snapshotter->calls->store_changed(daemon, batch);
    store_batch_snapshot(batch, snapshotter->now_ns, daemon->config.retention_ns / SPACINGS, &state);
    forget_some(snapshotter, batch);
    return state.count;
}

/* ---- By a copy ---- */

static int make_in_copy(int fd, void *user)
{
    struct store_batch *batch = store_batch_new();
    size_t size = make(user, batch);
    struct error err;

    return write(fd, &size, sizeof size) == sizeof size ? store_batch_save(batch, fd, &err) : -EIO;
}

/* The last bit begins the forgetting. */
static void commit_next(int status, const char *error, void *user)
{
    struct snapshotter *snapshotter = user;
    struct store_batch *batch = status == 0 ? store_batch_next(snapshotter->fd) : NULL;

    (void)error;
    if (batch)
        store_commit(snapshotter->daemon->store, batch, commit_next, snapshotter);
    else
        on_stored(status, NULL, snapshotter);
}

static void commit_when_both(struct snapshotter *snapshotter)
{
    if (snapshotter->marked && snapshotter->copy_made)
        commit_next(snapshotter->failed ? -EIO : 0, NULL, snapshotter);
}

static void on_marked(int status, const char *error, void *user)
{
    struct snapshotter *snapshotter = user;

    (void)error;
    snapshotter->marked = true;
    snapshotter->failed = snapshotter->failed || status != 0;
    commit_when_both(snapshotter);
}

static void on_copy_made(bool whole, int fd, void *user)
{
    struct snapshotter *snapshotter = user;
    size_t size;

    snapshotter->copy_made = true;
    snapshotter->no_copy = !whole || read(fd, &size, sizeof size) != sizeof size;
    snapshotter->failed = snapshotter->failed || snapshotter->no_copy;
    if (snapshotter->no_copy)
        daemon_log("the copy of carmad that makes a snapshot has failed: the next one is made without");
    else
        snapshotter->last_size = size;
    snapshotter->fd = fd;
    commit_when_both(snapshotter);
}

static bool begin_copy(struct snapshotter *snapshotter)
{
    struct store_batch *batch;

    if (snapshotter->no_copy ||
        !(snapshotter->copied = copied_begin(snapshotter->daemon->loop, make_in_copy, on_copy_made, snapshotter)))
        return false;
    batch = store_batch_new();
    store_batch_mark(batch);
    store_commit(snapshotter->daemon->store, batch, on_marked, snapshotter);
    snapshotter->calls->changed_taken(snapshotter->daemon);
    return true;
}

/* All input of the core so far is on its way to the store: the copy, or this batch, is as of the last of that. */
static void snapshot(struct snapshotter *snapshotter)
{
    bool few = !snapshotter->failed && snapshotter->records + snapshotter->last_size < FEW_RECORDS;
    struct store_batch *batch;

    snapshotter->now_ns = nodetime_now_ns();
    snapshotter->before_ns = snapshotter->now_ns - snapshotter->daemon->config.retention_ns;
    snapshotter->under_way = true;
    snapshotter->failed = snapshotter->marked = snapshotter->copy_made = false;
    snapshotter->records = 0;
    if (!few && begin_copy(snapshotter))
        return;
    snapshotter->no_copy = false;
    batch = store_batch_new();
    snapshotter->last_size = make(snapshotter, batch);
    snapshotter->calls->changed_taken(snapshotter->daemon);
    store_commit(snapshotter->daemon->store, batch, on_stored, snapshotter);
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
