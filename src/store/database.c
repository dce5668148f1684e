/* The database file: opening it, checking it, and bringing it to the present form. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_internal.h"

#define APPLICATION_ID 0x6361726d /* "carm" */

/* How long a person with another tool may hold up the database. */
#define BUSY_TIMEOUT_MS 10000

/* What SQLite's log grows to before it is written over from its beginning: STORE_CHECKPOINT_FRAMES, and what the last
 * transaction has beyond them. */
#define LOG_ROOM_BYTES (1024 * 4120)
#define LOG_ROOM_PART  16 /* of the free space */

/* The step at index n leads from user_version n to n + 1. Only ever append. */
static const char *const migrations[] = {
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE record (seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, type TEXT NOT NULL, job INTEGER NOT NULL,"
    " body TEXT NOT NULL) STRICT;"
    "CREATE TABLE spec (job INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;"
    "INSERT INTO meta VALUES ('created_unix_s', strftime('%s', 'now'));",
    /* From here on a submission may have the member `estimate`, which an earlier carma would not read. */
    "",
    /* Energy by GPU and job, and the counters up to which it is shared out. */
    "CREATE TABLE meter (gpu TEXT PRIMARY KEY, at_ns INTEGER NOT NULL, counter_mj INTEGER NOT NULL,"
    " idle_mw INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE energy (gpu TEXT NOT NULL, job INTEGER NOT NULL, mj INTEGER NOT NULL, PRIMARY KEY (gpu, job))"
    " STRICT, WITHOUT ROWID;",
    /* Snapshots bound the log. */
    "CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, kept INTEGER NOT NULL, body TEXT NOT NULL)"
    " STRICT;"
    "CREATE TABLE job (job INTEGER PRIMARY KEY, ended_ns INTEGER NOT NULL, body TEXT NOT NULL) STRICT;"
    "CREATE INDEX job_by_end ON job (ended_ns);",
    store_history_form,
    /* Which submissions were accepted under an id of their client's. */
    "CREATE TABLE request (uid INTEGER NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL, first INTEGER NOT NULL,"
    " count INTEGER NOT NULL, at_unix_s INTEGER NOT NULL, PRIMARY KEY (uid, id)) STRICT, WITHOUT ROWID;"
    /* The accounting has the first reservation; the last one is kept beside it. Of earlier jobs nobody knows it. */
    "ALTER TABLE history ADD COLUMN last_claim_bytes INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE history ADD COLUMN last_claim_source TEXT NOT NULL DEFAULT 'unknown';",
    /* How good the estimates of SM activity were. */
    "ALTER TABLE history ADD COLUMN model TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE history ADD COLUMN estimated_permille INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE history ADD COLUMN activity_permille INTEGER NOT NULL DEFAULT 0;"
    /* Leases end in two states of their own. SQLite does not say which of two triggers is first: both add the user. */
    "ALTER TABLE total ADD COLUMN returned INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE total ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;"
    "CREATE TRIGGER history_counted_leases AFTER INSERT ON history WHEN new.state IN ('RETURNED', 'EXPIRED') BEGIN"
    " INSERT OR IGNORE INTO total (uid, user) VALUES (new.uid, new.user);"
    " UPDATE total SET returned = returned + (new.state = 'RETURNED'), expired = expired + (new.state = 'EXPIRED')"
    " WHERE uid = new.uid; END;",
    /* From here on there are the records `forgotten` and `state_prior`, which an earlier carma would not read. */
    "",
    /* Rows of a snapshot's jobs are written bit by bit, and say which records are in them; so are its texts. */
    "ALTER TABLE job ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;"
    "CREATE TABLE part (seq INTEGER NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq, number))"
    " STRICT, WITHOUT ROWID;",
    /* How often jobs were moved off their GPUs. */
    "ALTER TABLE history ADD COLUMN moves INTEGER NOT NULL DEFAULT 0;",
    /* The accounting is asked by projects and tags. */
    "ALTER TABLE history ADD COLUMN account TEXT;"
    "ALTER TABLE history ADD COLUMN tags TEXT;",
    /* All is told in the words of the code and the documents. */
    "ALTER TABLE history RENAME COLUMN launches TO attempts;"
    "ALTER TABLE history RENAME COLUMN recoveries TO retries;"
    "ALTER TABLE history RENAME COLUMN claim_bytes TO reserved_bytes;"
    "ALTER TABLE history RENAME COLUMN claim_source TO reservation_source;"
    "ALTER TABLE history RENAME COLUMN last_claim_bytes TO last_reserved_bytes;"
    "ALTER TABLE history RENAME COLUMN last_claim_source TO last_reservation_source;"
    "ALTER TABLE total RENAME COLUMN recoveries TO retries;"
    "UPDATE history SET last_reservation_source = 'observed' WHERE last_reservation_source = 'seen';",
    /* The last step has it, so that texts are brought up to date once: leases say how long they have waited in vain. */
    STORE_PRESENT,
};

static int errno_of(sqlite3 *db)
{
    int system;

    switch (sqlite3_errcode(db)) { /* the primary code, for any extended one */
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_READONLY:
        return EROFS;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBUSY;
    case SQLITE_CONSTRAINT:
        return EEXIST;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return EBADMSG;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        system = sqlite3_system_errno(db);
        return system ? system : EACCES;
    default:
        return EIO;
    }
}

static const char *remedy(int code)
{
    switch (code) {
    case ENOSPC:
        return ": free some space";
    case EBADMSG:
        return ": restore it from a backup, or move it away to start anew";
    case EBUSY:
        return ": end the program that holds it";
    default:
        return "";
    }
}

int store_sqlite_error(sqlite3 *db, const char *path, const char *doing, struct error *err)
{
    int code = errno_of(db);

    error_set(err, code, "%s: cannot %s: %s%s", path, doing, sqlite3_errmsg(db), remedy(code));
    error_make_printable(err); /* it quotes the damaged data */
    return -code;
}

static int pragma_value(sqlite3 *db, const char *path, const char *pragma, int64_t *value, struct error *err)
{
    CLEANUP(free_ptr) char *sql = xasprintf("PRAGMA %s", pragma);
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
        rc = store_sqlite_error(db, path, "be read", err);
    else
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

static int execute(sqlite3 *db, const char *path, const char *doing, const char *sql, struct error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_sqlite_error(db, path, doing, err);
}

/* All steps in one transaction: a crash in the middle leaves the old form. */
static int migrate(sqlite3 *db, const char *path, int64_t version, struct error *err)
{
    CLEANUP(free_ptr)
    char *stamp =
        xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %zu;", APPLICATION_ID, array_size(migrations));
    int rc = store_present_begin(db) == SQLITE_OK ? execute(db, path, "be brought up to date", "BEGIN IMMEDIATE", err)
                                                  : store_sqlite_error(db, path, "be brought up to date", err);

    for (size_t i = (size_t)version; !rc && i < array_size(migrations); i++)
        rc = execute(db, path, "be brought up to date", migrations[i], err);
    if (!rc)
        rc = execute(db, path, "be brought up to date", stamp, err);
    if (!rc)
        rc = execute(db, path, "be brought up to date", "COMMIT", err);
    if (rc && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    store_present_end(db);
    return rc;
}

static int check_form(sqlite3 *db, const char *path, bool only_read, struct error *err)
{
    int64_t application = 0, version = 0, objects = 0;
    int rc = pragma_value(db, path, "application_id", &application, err);

    if (!rc)
        rc = pragma_value(db, path, "user_version", &version, err);
    if (!rc)
        rc = pragma_value(db, path, "schema_version", &objects, err);
    if (rc)
        return rc;
    if (application != APPLICATION_ID && (application || version || objects))
        return error_set(err, EBADMSG,
                         "%s: is the database of another program: give carmad a state directory of its own", path);
    if (version < 0 || version > (int64_t)array_size(migrations))
        return error_set(err, ENOTSUP,
                         "%s: has form %" PRId64 ", this carma knows up to %zu: use the newer carma that made it", path,
                         version, array_size(migrations));
    if (version == (int64_t)array_size(migrations))
        return 0;
    if (only_read)
        return error_set(err, ENOTSUP, "%s: has form %" PRId64 ", this carma reads %zu: start carmad on it once", path,
                         version, array_size(migrations));
    return migrate(db, path, version, err);
}

/* SQLite gives its log and its shared memory the mode of the database. So the database must have the right one before
 * SQLite first sees it. */
static int make_file(const char *path, struct error *err)
{
    CLEANUP(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    return 0;
}

static int open_database(const char *path, int access, const char *settings, sqlite3 **opened, struct error *err)
{
    sqlite3 *db = NULL;
    int rc;

    if (sqlite3_open_v2(path, &db, access, NULL) != SQLITE_OK) {
        rc = db ? store_sqlite_error(db, path, "be opened", err) : error_set(err, ENOMEM, "%s: out of memory", path);
    } else {
        sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
        rc = execute(db, path, "be opened", settings, err);
    }
    if (!rc)
        rc = check_form(db, path, access & SQLITE_OPEN_READONLY, err);
    if (rc) {
        /* SQLite would remove the log, which the mark demands: the next start would take it for lost. */
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_close(db);
        return rc;
    }
    *opened = db;
    return 0;
}

int store_database_open(const char *path, sqlite3 **opened, struct error *err)
{
    int rc = make_file(path, err);

    return rc ? rc
              : open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX,
                              "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;",
                              opened, err);
}

/* Of zeros, which are no frame: https://www.sqlite.org/fileformat2.html#walformat. Not on a disk with little space. */
void store_database_make_room(sqlite3 *db, const char *path)
{
    static const char zeros[4096];
    sqlite3_file *wal = NULL;
    sqlite3_int64 at = LOG_ROOM_BYTES;
    struct statvfs disk;

    if (statvfs(path, &disk) < 0 || disk.f_bavail < LOG_ROOM_PART * LOG_ROOM_BYTES / disk.f_frsize ||
        sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK || !wal->pMethods ||
        wal->pMethods->xFileSize(wal, &at) != SQLITE_OK || at >= LOG_ROOM_BYTES)
        return;
    while (at < LOG_ROOM_BYTES && wal->pMethods->xWrite(wal, zeros, sizeof zeros, at) == SQLITE_OK)
        at += (sqlite3_int64)sizeof zeros;
    wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}

int store_database_hold(sqlite3 *db, const char *path, struct error *err)
{
    return execute(db, path, "be read", "BEGIN;", err);
}

int store_database_open_to_read(const char *path, sqlite3 **opened, struct error *err)
{
    return open_database(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, "PRAGMA trusted_schema = OFF;", opened, err);
}
