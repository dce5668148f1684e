/* carma admin recover: a store goes on without what it has lost. SQLite reads a damaged WAL up to the damage, so what
 * is left is the store as it was after some commit; without a WAL it may be a mixture, which verify finds. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_internal.h"

/* Jobs whose numbers nobody has noted: those of the seconds before a power cut, or all of a store without a mark. */
#define UNKNOWN_JOBS 10000

int store_check_mark(const char *directory, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/lock", directory);
    CLEANUP(close_fd) int lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct store store = {.directory = (char *)directory, .mark_fd = -1};
    int rc;

    if (lock < 0 ? errno != ENOENT : flock(lock, LOCK_SH | LOCK_NB) < 0) /* a copy has no lock */
        return 0;
    store.path = xasprintf("%s/store.db", directory);
    rc = store_marking_check(&store, err);
    close_fd(&store.mark_fd);
    free(store.path);
    return rc;
}

/* A copy, since SQLite needs the part that can be read. */
static int keep_wal(const struct store *store, struct store_recovery *recovery, struct error *err)
{
    CLEANUP(free_ptr) char *wal = xasprintf("%s-wal", store->path);
    CLEANUP(close_fd) int from = open(wal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    CLEANUP(close_fd) int to = -1;
    struct stat st;
    ssize_t count = 1;

    if (from < 0 && errno == ENOENT)
        return 0;
    if (from >= 0 && fstat(from, &st) == 0) {
        snprintf(recovery->kept, sizeof recovery->kept, "%s.damaged-%jd", wal, (intmax_t)time(NULL));
        to = open(recovery->kept, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    while (to >= 0 && count > 0)
        count = copy_file_range(from, NULL, to, NULL, 1 << 20, 0);
    return to < 0 || count < 0 || fsync(to) < 0
               ? error_set(err, errno, "%s cannot be kept as %s: %s", wal, recovery->kept, strerror(errno))
               : 0;
}

static int check_whole(const struct store *store, struct error *err)
{
    sqlite3_stmt *row = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(store->db, "PRAGMA integrity_check(1)", -1, &row, NULL) != SQLITE_OK ||
        sqlite3_step(row) != SQLITE_ROW)
        rc = store_sqlite_error(store->db, store->path, "be read", err);
    else if (strcmp((const char *)sqlite3_column_text(row, 0), "ok") != 0)
        rc = error_set(err, EBADMSG, "%s: what is left is damaged: %.200s: put a copy of the store back", store->path,
                       (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    if (rc)
        error_make_printable(err);
    return rc;
}

/* The mark last: a kill before it leaves a store that is refused as before. */
static int go_on(struct store *store, struct store_recovery *recovery, struct error *err)
{
    uint64_t given = store->mark.last_job > store->last_job ? store->mark.last_job : store->last_job;
    CLEANUP(free_ptr)
    char *sql = xasprintf("REPLACE INTO meta VALUES ('marked', '1');"
                          "REPLACE INTO meta VALUES ('last_job', '%" PRIu64 "');"
                          "PRAGMA wal_checkpoint(TRUNCATE);",
                          given + UNKNOWN_JOBS);

    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return store_sqlite_error(store->db, store->path, "be repaired", err);
    recovery->records = store->seq;
    recovery->stored = store->mark.seq > store->seq ? store->mark.seq : store->seq;
    recovery->next_job = given + UNKNOWN_JOBS + 1;
    store->mark = (struct store_mark){.seq = store->seq, .last_job = given + UNKNOWN_JOBS};
    close_fd(&store->mark_fd);
    store->mark_fd = store_mark_make(store->directory, &store->mark, err);
    return store->mark_fd < 0 ? store->mark_fd : 0;
}

int store_recover(const char *directory, struct store_recovery *recovery, struct error *err)
{
    struct store store = {
        .directory = (char *)directory, .lock_fd = -1, .directory_fd = -1, .mark_fd = -1, .wal_fd = -1};
    struct error why;
    int rc = store_check_directory(directory, err);

    *recovery = (struct store_recovery){0};
    store.path = xasprintf("%s/store.db", directory);
    if (!rc)
        rc = store_lock(directory, &store.lock_fd, err);
    if (!rc)
        rc = store_lock_directory(directory, &store.directory_fd, err);
    if (!rc && store_marking_check(&store, &why) < 0)
        rc = keep_wal(&store, recovery, err);
    if (!rc)
        rc = store_database_open(store.path, &store.db, err);
    if (!rc)
        rc = check_whole(&store, err);
    if (!rc)
        rc = store_read_last(&store, err);
    if (!rc)
        rc = go_on(&store, recovery, err);
    if (rc && store.db) /* as it was */
        sqlite3_db_config(store.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(store.db);
    close_fd(&store.mark_fd);
    close_fd(&store.directory_fd);
    close_fd(&store.lock_fd);
    free(store.path);
    return rc;
}
