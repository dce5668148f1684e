/* One submission, as it is stored: by a connection of its own. */
#include <errno.h>
#include <inttypes.h>

#include "base/memory.h"
#include "store/store_internal.h"

int store_read_spec(const char *directory, uint64_t job, char **text, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    sqlite3_stmt *row = NULL;
    sqlite3 *db = NULL;
    int code = SQLITE_ERROR, rc = store_database_open_to_read(path, &db, err);

    if (rc)
        return rc;
    if (sqlite3_prepare_v2(db, "SELECT body FROM spec WHERE job = ?", -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, (sqlite3_int64)job);
        code = sqlite3_step(row);
    }
    if (code == SQLITE_ROW)
        *text = xstrdup((const char *)sqlite3_column_text(row, 0));
    else if (code == SQLITE_DONE)
        rc = error_set(err, ENOENT, "%s: nothing is stored of job %" PRIu64, path, job);
    else
        rc = store_sqlite_error(db, path, "be read", err);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return rc;
}
