/* How node time goes on, in the row `clock` of meta: the boot's identity, a blank, and the offset. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "store/store_internal.h"

int store_load_clock(const struct store *store, struct store_clock *clock, struct error *err)
{
    sqlite3_stmt *row = NULL;
    const char *text = NULL, *blank = NULL;
    int rc = sqlite3_prepare_v2(store->db, "SELECT value FROM meta WHERE key = 'clock'", -1, &row, NULL);

    *clock = (struct store_clock){0};
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(row, 0);
    if (text)
        blank = strchr(text, ' ');
    if (blank && (size_t)(blank - text) < sizeof clock->boot &&
        parse_integer(blank + 1, INT64_MIN, INT64_MAX, &clock->offset_ns, NULL) == 0)
        snprintf(clock->boot, sizeof clock->boot, "%.*s", (int)(blank - text), text);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "be read", err);
    sqlite3_finalize(row);
    return rc;
}

int store_keep_clock(const struct store *store, const struct store_clock *clock, struct error *err)
{
    CLEANUP(free_ptr)
    char *sql = xasprintf("REPLACE INTO meta VALUES ('clock', '%s %" PRId64 "')", clock->boot, clock->offset_ns);

    if (store->committed)
        return error_set(err, EBUSY, "%s: is in use: its clock is kept only before the first commit", store->path);
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(store->db, store->path, "store its clock", err);
}
