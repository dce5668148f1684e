/* A copy of a database that is in use. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_internal.h"

#define PAGES_AT_ONCE 256 /* between two looks at the progress; the daemon's commits are not held up meanwhile */
#define BUSY_PAUSE_MS 20
#define BUSY_TRIES    1000

static int copy(sqlite3 *from, sqlite3 *to, const char *path, void (*on_progress)(int done, int all, void *user),
                void *user, struct error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int code, tries = 0;

    if (!backup)
        return store_sqlite_error(to, path, "be written", err);
    do {
        code = sqlite3_backup_step(backup, PAGES_AT_ONCE);
        if (on_progress)
            on_progress(sqlite3_backup_pagecount(backup) - sqlite3_backup_remaining(backup),
                        sqlite3_backup_pagecount(backup), user);
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
            sqlite3_sleep(BUSY_PAUSE_MS);
    } while (code == SQLITE_OK || ((code == SQLITE_BUSY || code == SQLITE_LOCKED) && ++tries < BUSY_TRIES));
    /* There is no mark beside a copy. */
    return sqlite3_backup_finish(backup) == SQLITE_OK &&
                   sqlite3_exec(to, "DELETE FROM meta WHERE key = 'marked'", NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(to, path, "be written", err);
}

int store_backup(const char *directory, const char *to, void (*on_progress)(int done, int all, void *user), void *user,
                 struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    CLEANUP(close_fd) int fd = -1;
    sqlite3 *from = NULL, *copied = NULL;
    int rc = store_database_open_to_read(path, &from, err);

    if (rc)
        return rc;
    fd = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        rc = error_set(err, errno, "%s: %s: name a new file", to, strerror(errno));
    } else {
        /* One read transaction: the copy is of one moment, however long it takes. */
        if (sqlite3_exec(from, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL) != SQLITE_OK)
            rc = store_sqlite_error(from, path, "be read", err);
        else if (sqlite3_open_v2(to, &copied, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
            rc = store_sqlite_error(copied, to, "be written", err);
        else
            rc = copy(from, copied, to, on_progress, user, err);
        sqlite3_close(copied);
        if (!rc && fsync(fd) < 0)
            rc = error_set(err, errno, "%s: %s", to, strerror(errno));
        if (rc)
            unlink(to);
    }
    sqlite3_close(from);
    return rc;
}
