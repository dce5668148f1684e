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

/* Rows of the accounting that a snapshot forgets at most, and one more for each record since the one before. That is
 * more than jobs can have ended meanwhile. With a long queue, where snapshots are far apart, the history would
 * otherwise grow for ever.
 */
#define HISTORY_AT_ONCE 1000

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
    size_t forget_history;            /* rows, with it */
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

static void on_stored(int status, const char *error, void *user)
{
    (void)error; /* the batch before it has the same trouble, and tells it */
    end(user, status == 0);
}

/* Its size in records. */
static size_t make(struct snapshotter *snapshotter, struct store_batch *batch)
{
    CLEANUP(record_list_release) struct record_list state = {0};
    struct daemon *daemon = snapshotter->daemon;
    int64_t retention_ns = daemon->config.retention_ns, history_ns = daemon->config.history_retention_ns;

    core_snapshot(daemon->core, snapshotter->now_ns, &state);
    snapshotter->calls->store_changed(daemon, batch);
    store_batch_snapshot(batch, snapshotter->now_ns, retention_ns / SPACINGS, &state);
    store_batch_forget(batch, snapshotter->before_ns);
    store_batch_forget_history(batch, snapshotter->now_ns - (history_ns > retention_ns ? history_ns : retention_ns),
                               (uint32_t)(HISTORY_AT_ONCE + snapshotter->forget_history));
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

/* The forgetting is in the last bit, after which there is none. */
static void commit_next(int status, const char *error, void *user)
{
    struct snapshotter *snapshotter = user;
    struct store_batch *batch = status == 0 ? store_batch_next(snapshotter->fd) : NULL;

    (void)error;
    if (batch)
        store_commit(snapshotter->daemon->store, batch, commit_next, snapshotter);
    else
        end(snapshotter, status == 0);
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
    snapshotter->forget_history = snapshotter->records;
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
