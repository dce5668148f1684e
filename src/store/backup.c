/* A copy of a database that is in use. SQLite has further files beside a database, and believes what it finds there: so
 * a copy is made in a directory of its own, beside its place. Where everybody may make names, as in /tmp, somebody else
 * could otherwise put a log there with rows of his. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
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

static int name_another(const char *to, int code, struct error *err)
{
    return error_set(err, code, "%s: %s: name a new file", to, strerror(code));
}

/* Nothing that is there is replaced. Not every file system knows both ways. */
static int give_name(const char *made, const char *to, struct error *err)
{
    if (renameat2(AT_FDCWD, made, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    return (errno == EINVAL || errno == ENOSYS) && link(made, to) == 0 ? 0 : name_another(to, errno, err);
}

static int copy_into(const char *path, const char *made, void (*on_progress)(int done, int all, void *user), void *user,
                     struct error *err)
{
    CLEANUP(close_fd) int fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    sqlite3 *from = NULL, *copied = NULL;
    int rc =
        fd < 0 ? error_set(err, errno, "%s: %s", made, strerror(errno)) : store_database_open_to_read(path, &from, err);

    /* One read transaction: the copy is of one moment, however long it takes. */
    if (!rc && sqlite3_exec(from, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL) != SQLITE_OK)
        rc = store_sqlite_error(from, path, "be read", err);
    if (!rc && sqlite3_open_v2(made, &copied, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        rc = store_sqlite_error(copied, made, "be written", err);
    if (!rc)
        rc = copy(from, copied, made, on_progress, user, err);
    sqlite3_close(copied);
    sqlite3_close(from);
    return !rc && fsync(fd) < 0 ? error_set(err, errno, "%s: %s", made, strerror(errno)) : rc;
}

int store_backup(const char *directory, const char *to, void (*on_progress)(int done, int all, void *user), void *user,
                 struct error *err)
{
    const char *slash = strrchr(to, '/');
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    CLEANUP(free_ptr)
    char *own = xasprintf("%.*s.carma-backup-XXXXXX", slash ? (int)(slash + 1 - to) : 0, to);
    CLEANUP(free_ptr) char *made = NULL;
    struct stat st;
    int rc;

    if (lstat(to, &st) == 0)
        return name_another(to, EEXIST, err);
    if (!mkdtemp(own))
        return name_another(to, errno, err);
    made = xasprintf("%s/copy", own);
    rc = copy_into(path, made, on_progress, user, err);
    if (!rc)
        rc = give_name(made, to, err);
    file_remove_tree(own);
    return rc;
}
