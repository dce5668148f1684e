/* When the mark (mark.h) is looked at and written, in the life of a store. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_internal.h"

/* SQLite's own number of pages after which it takes the WAL into the database. Its way of doing so and the mark need
 * the same hook. */
#define CHECKPOINT_FRAMES 1000

static int refuse(const struct store *store, struct error *err)
{
    struct error what = err ? *err : (struct error){{0}};

    return error_set(err, EBADMSG,
                     "%.250s: put a copy of the store back, or go on with what is left: carma admin recover --state "
                     "%.150s",
                     what.text, store->directory);
}

int store_marking_check(struct store *store, struct error *err)
{
    int rc = store_mark_read(store->directory, &store->mark, err);

    if (rc == -ENOENT) /* store_marking_begin knows whether there was one */
        return 0;
    if (rc)
        return rc == -EBADMSG ? refuse(store, err) : rc;
    if (access(store->path, F_OK) < 0 && errno == ENOENT && store->mark.seq) {
        error_set(err, EBADMSG, "%s is gone, with %" PRIu64 " records up to job %" PRIu64, store->path, store->mark.seq,
                  store->mark.last_job);
        return refuse(store, err);
    }
    rc = store_wal_check(store->path, &store->mark, err);
    if (rc)
        return rc == -EBADMSG ? refuse(store, err) : rc;
    store->mark_fd = store_mark_open(store->directory, err);
    return store->mark_fd < 0 ? store->mark_fd : 0;
}

static int on_committed(void *user, sqlite3 *db, const char *name, int frames)
{
    struct store *store = user;

    store->wal_frames = (uint32_t)frames;
    if (frames >= CHECKPOINT_FRAMES)
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

static int query_integer(const struct store *store, const char *sql, int64_t *value, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc =
        sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW
            ? 0
            : store_sqlite_error(store->db, store->path, "be read", err);

    if (!rc)
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

/* The first mark of a store that had none. */
static int make_mark(struct store *store, struct error *err)
{
    int64_t marked = 0;
    int rc = query_integer(store, "SELECT count(*) FROM meta WHERE key = 'marked'", &marked, err);

    if (rc)
        return rc;
    if (marked) {
        error_set(err, EBADMSG, "%s/store.mark is gone: whether the store is whole is not known", store->directory);
        return refuse(store, err);
    }
    store->mark = (struct store_mark){.seq = store->seq, .last_job = store->last_job};
    store->mark_fd = store_mark_make(store->directory, &store->mark, err);
    if (store->mark_fd < 0)
        return store->mark_fd;
    /* in the database itself: the WAL may be lost with the mark */
    return sqlite3_exec(store->db, "REPLACE INTO meta VALUES ('marked', '1'); PRAGMA wal_checkpoint", NULL, NULL,
                        NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(store->db, store->path, "store", err);
}

int store_marking_begin(struct store *store, struct error *err)
{
    int rc = store->mark_fd < 0 ? make_mark(store, err) : 0;

    if (!rc && (store->seq < store->mark.seq || store->last_job < store->mark.last_job)) {
        close_fd(&store->mark_fd);
        store->mark_fd = -1;
        error_set(err, EBADMSG,
                  "%.120s is an older one, or a part of it is lost: it ends with record %" PRIu64 " and job %" PRIu64
                  ", and record %" PRIu64 " and job %" PRIu64 " were acknowledged",
                  store->path, store->seq, store->last_job, store->mark.seq, store->mark.last_job);
        return refuse(store, err);
    }
    return rc ? rc : store_marking_follow(store, err);
}

int store_marking_follow(struct store *store, struct error *err)
{
    int64_t page_size = 0;
    int rc = query_integer(store, "PRAGMA page_size", &page_size, err);

    if (rc)
        return rc;
    store->page_size = (uint32_t)page_size;
    sqlite3_wal_hook(store->db, on_committed, store);
    return 0;
}

/* A mark that cannot be written stays the older one, which demands less. */
void store_marking_committed(struct store *store)
{
    struct store_mark mark = store->mark;

    if (!store->wal_frames)
        return;
    if (store->wal_fd < 0) {
        CLEANUP(free_ptr) char *wal = xasprintf("%s-wal", store->path);
        store->wal_fd = open(wal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        store_heal_wal(store);
    }
    mark.seq = store->seq;
    if (store->wal_fd >= 0 && store_wal_note(store->wal_fd, store->page_size, store->wal_frames, &mark) == 0 &&
        store_mark_write(store->mark_fd, &mark) == 0)
        store->mark = mark;
    store->wal_frames = 0;
}

/* The database takes in all of the WAL, and then needs none. The mark says so, on the disk, before SQLite removes the
 * WAL. Where some reader keeps it from that, or the store was refused, the WAL stays. */
void store_marking_end(struct store *store)
{
    int all = 0, done = 0;

    store->mark.frames = 0;
    if (store->db &&
        (store->mark_fd < 0 || store->page_size == 0 ||
         sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &all, &done) != SQLITE_OK ||
         all != done || store_mark_write(store->mark_fd, &store->mark) < 0 || fdatasync(store->mark_fd) < 0))
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    close_fd(&store->mark_fd);
    close_fd(&store->wal_fd);
}
