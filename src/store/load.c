/* Reading everything back, trusting nothing: a row that is not what was written stops the load and is named. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/record_json.h"
#include "base/memory.h"
#include "store/store_internal.h"

static const char *text_column(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? text : "";
}

static int load_specs(struct store *store, sqlite3_stmt *row,
                      int (*on_spec)(uint64_t job, const char *json, void *user), void *user, struct error *err)
{
    int rc;

    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        sqlite3_int64 job = sqlite3_column_int64(row, 0);

        if (job < 0)
            return error_set(err, EBADMSG, "%s: the spec of job %" PRId64 " is damaged: restore it from a backup",
                             store->path, (int64_t)job);
        rc = on_spec ? on_spec((uint64_t)job, text_column(row, 1), user) : 0;
        if (rc) {
            error_set(err, EINVAL, "%s: the spec of job %" PRId64 " was not accepted", store->path, (int64_t)job);
            return rc;
        }
    }
    return rc == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "be read", err);
}

/* seq has no gaps: a row that is missing would silently give another state. */
static int load_record(const struct store *store, sqlite3_stmt *row, uint64_t expected, struct record *record,
                       struct error *err)
{
    sqlite3_int64 seq = sqlite3_column_int64(row, 0);
    int rc;

    if ((uint64_t)seq != expected)
        return error_set(err, EBADMSG, "%s: record %" PRIu64 " is missing: restore it from a backup", store->path,
                         expected);
    rc = record_json_read(text_column(row, 4), (size_t)sqlite3_column_bytes(row, 4), record, err);
    if (!rc && (record->at_ns != sqlite3_column_int64(row, 1) ||
                strcmp(record_type_name(record->type), text_column(row, 2)) != 0 ||
                record->job != (uint64_t)sqlite3_column_int64(row, 3)))
        rc = error_set(err, EBADMSG, "its columns and its body differ");
    if (rc) {
        error_prefix(err, "%s: record %" PRIu64 " is damaged", store->path, expected);
        return -EBADMSG;
    }
    return 0;
}

static int load_records(const struct store *store, sqlite3_stmt *row,
                        int (*on_record)(uint64_t seq, const struct record *record, void *user), void *user,
                        struct error *err)
{
    uint64_t seq = 0;
    int rc;

    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct record record;

        rc = load_record(store, row, ++seq, &record, err);
        if (rc)
            return rc;
        rc = on_record ? on_record(seq, &record, user) : 0;
        if (rc) {
            error_set(err, EINVAL, "%s: record %" PRIu64 " (%s) was not accepted", store->path, seq,
                      record_type_name(record.type));
            return rc;
        }
    }
    return rc == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "be read", err);
}

#define SELECT_RECORDS "SELECT seq, at_ns, type, job, body FROM record ORDER BY seq"

int store_load(struct store *store, int (*on_record)(uint64_t seq, const struct record *record, void *user),
               int (*on_spec)(uint64_t job, const char *json, void *user), void *user, struct error *err)
{
    sqlite3_stmt *specs = NULL, *records = NULL;
    int rc = 0;

    if (store->committed)
        return error_set(err, EBUSY, "%s: is in use: it can be loaded only before the first commit", store->path);
    if (sqlite3_prepare_v2(store->db, "SELECT job, body FROM spec ORDER BY job", -1, &specs, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(store->db, SELECT_RECORDS, -1, &records, NULL) != SQLITE_OK)
        rc = store_sqlite_error(store->db, store->path, "be read", err);
    if (!rc)
        rc = load_specs(store, specs, on_spec, user, err);
    if (!rc)
        rc = load_records(store, records, on_record, user, err);
    sqlite3_finalize(specs);
    sqlite3_finalize(records);
    return rc;
}

static int load_meters(struct store *store, sqlite3_stmt *row,
                       int (*on_meter)(const struct store_meter *meter, void *user), void *user, struct error *err)
{
    int rc, step;

    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_meter meter = {.gpu = text_column(row, 0),
                                    .at_ns = sqlite3_column_int64(row, 1),
                                    .counter_mj = sqlite3_column_int64(row, 2),
                                    .idle_mw = sqlite3_column_int64(row, 3)};
        rc = on_meter(&meter, user);
        if (rc)
            return error_set(err, -rc, "%s: the meter of GPU %s was not accepted", store->path, meter.gpu);
    }
    return step == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "be read", err);
}

static int load_accounts(struct store *store, sqlite3_stmt *row,
                         int (*on_account)(const char *gpu, uint64_t party, int64_t mj, void *user), void *user,
                         struct error *err)
{
    int rc, step;

    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        rc = on_account(text_column(row, 0), (uint64_t)sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2), user);
        if (rc)
            return error_set(err, -rc, "%s: the energy of job %" PRId64 " was not accepted", store->path,
                             (int64_t)sqlite3_column_int64(row, 1));
    }
    return step == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "be read", err);
}

int store_load_energy(struct store *store, int (*on_meter)(const struct store_meter *meter, void *user),
                      int (*on_account)(const char *gpu, uint64_t party, int64_t mj, void *user), void *user,
                      struct error *err)
{
    sqlite3_stmt *meters = NULL, *accounts = NULL;
    int rc = 0;

    if (store->committed)
        return error_set(err, EBUSY, "%s: is in use: it can be loaded only before the first commit", store->path);
    if (sqlite3_prepare_v2(store->db, "SELECT gpu, at_ns, counter_mj, idle_mw FROM meter ORDER BY gpu", -1, &meters,
                           NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(store->db, "SELECT gpu, job, mj FROM energy ORDER BY gpu, job", -1, &accounts, NULL) !=
            SQLITE_OK)
        rc = store_sqlite_error(store->db, store->path, "be read", err);
    if (!rc)
        rc = load_meters(store, meters, on_meter, user, err);
    if (!rc)
        rc = load_accounts(store, accounts, on_account, user, err);
    sqlite3_finalize(meters);
    sqlite3_finalize(accounts);
    return rc;
}

int store_read(const char *directory, int (*on_record)(uint64_t seq, const struct record *record, void *user),
               void *user, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    struct store store = {.path = path};
    sqlite3_stmt *records = NULL;
    int rc = store_database_open_to_read(path, &store.db, err);

    if (rc)
        return rc;
    if (sqlite3_prepare_v2(store.db, SELECT_RECORDS, -1, &records, NULL) != SQLITE_OK)
        rc = store_sqlite_error(store.db, path, "be read", err);
    else
        rc = load_records(&store, records, on_record, user, err);
    sqlite3_finalize(records);
    sqlite3_close(store.db);
    return rc;
}
