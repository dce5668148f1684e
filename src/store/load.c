/* Reading everything back, trusting nothing: a record that differs from the written one stops the load and is named. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/record_json.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "store/store_internal.h"

static const char *text_column(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? text : "";
}

/* No record of the log can be left out: later ones would mean something else. */
#define REMEDY "restore the store from a backup (carma admin backup), or begin with an empty state directory"

static void finalize(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

static int prepare(const struct store *store, const char *sql, sqlite3_stmt **statement, struct error *err)
{
    return sqlite3_prepare_v2(store->db, sql, -1, statement, NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(store->db, store->path, "be read", err);
}

static int end_of_rows(const struct store *store, int rc, struct error *err)
{
    return rc == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "be read", err);
}

int store_read_last(struct store *store, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int rc =
        prepare(store,
                "SELECT max(coalesce((SELECT max(seq) FROM record), 0), coalesce((SELECT max(seq) FROM snapshot), 0)),"
                " max(coalesce((SELECT max(job) FROM spec), 0), coalesce((SELECT max(job) FROM record), 0),"
                "     coalesce((SELECT max(job) FROM job), 0),"
                "     coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_job'), 0))",
                &row, err);

    if (rc)
        return rc;
    if (sqlite3_step(row) != SQLITE_ROW)
        return store_sqlite_error(store->db, store->path, "be read", err);
    store->seq = (uint64_t)sqlite3_column_int64(row, 0);
    store->last_job = (uint64_t)sqlite3_column_int64(row, 1);
    return 0;
}

/* Rows of a job's number, a text, and, for take_state, the number of a record. `what` is for messages. */
static int load_texts(const struct store *store, const char *what, const char *sql, uint64_t most_ended,
                      int (*take)(uint64_t job, const char *json, void *user),
                      int (*take_state)(uint64_t job, uint64_t seq, const char *json, void *user), void *user,
                      struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int rc = prepare(store, sql, &row, err);

    if (rc || (!take && !take_state))
        return rc;
    sqlite3_bind_int64(row, 1, most_ended < INT64_MAX ? (sqlite3_int64)most_ended : INT64_MAX);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        sqlite3_int64 job = sqlite3_column_int64(row, 0);

        if (job < 0)
            return error_set(err, EBADMSG, "%s: the %s of job %" PRId64 " is damaged: restore it from a backup",
                             store->path, what, (int64_t)job);
        rc = take ? take((uint64_t)job, text_column(row, 1), user)
                  : take_state((uint64_t)job, (uint64_t)sqlite3_column_int64(row, 2), text_column(row, 1), user);
        if (rc) {
            error_set(err, EINVAL, "%s: the %s of job %" PRId64 " was not accepted", store->path, what, (int64_t)job);
            return rc;
        }
    }
    return end_of_rows(store, rc, err);
}

/* ---- Snapshots ---- */

/* Whether every line is a record. */
static bool snapshot_parse(const char *text, struct record_list *list)
{
    struct error err;

    while (*text) {
        size_t length = strcspn(text, "\n");
        struct record record;

        if (text[length] != '\n' || record_json_read(text, length, &record, &err) != 0)
            return false;
        record_list_add(list, &record);
        text += length + 1;
    }
    return list->count > 0;
}

/* The first snapshot of `sql` that can be read; *seq 0 and an empty list: there is none. */
static int find_snapshot(const struct store *store, const char *sql, uint64_t *seq, struct record_list *list,
                         struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int rc = prepare(store, sql, &row, err);

    *seq = 0;
    if (rc)
        return rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        list->count = 0;
        if (snapshot_parse(text_column(row, 1), list)) {
            *seq = (uint64_t)sqlite3_column_int64(row, 0);
            return 0;
        }
    }
    list->count = 0;
    return end_of_rows(store, rc, err);
}

static int hand_out_snapshot(const struct store *store, uint64_t seq, const struct record_list *snapshot,
                             int (*on_record)(uint64_t seq, const struct record *record, void *user), void *user,
                             struct error *err)
{
    for (size_t i = 0; i < snapshot->count && on_record; i++) {
        int rc = on_record(seq, &snapshot->items[i], user);

        if (rc) {
            error_set(err, EINVAL, "%s: the snapshot after record %" PRIu64 " (%s) was not accepted: " REMEDY,
                      store->path, seq, record_type_name(snapshot->items[i].type));
            return rc;
        }
    }
    return 0;
}

/* ---- Records ---- */

/* seq has no gaps: a row that is missing would silently give another state. */
static int load_record(const struct store *store, sqlite3_stmt *row, uint64_t expected, struct record *record,
                       struct error *err)
{
    sqlite3_int64 seq = sqlite3_column_int64(row, 0);
    int rc;

    if ((uint64_t)seq != expected)
        return error_set(err, EBADMSG, "%s: record %" PRIu64 " is missing: " REMEDY, store->path, expected);
    rc = record_json_read(text_column(row, 4), (size_t)sqlite3_column_bytes(row, 4), record, err);
    if (!rc && (record->at_ns != sqlite3_column_int64(row, 1) ||
                strcmp(record_type_name(record->type), text_column(row, 2)) != 0 ||
                record->job != (uint64_t)sqlite3_column_int64(row, 3)))
        rc = error_set(err, EBADMSG, "its columns and its body differ");
    if (rc) {
        struct error why = *err;

        return error_set(err, EBADMSG, "%s: record %" PRIu64 " is damaged: %.200s: " REMEDY, store->path, expected,
                         why.text);
    }
    return 0;
}

static int load_records_after(const struct store *store, uint64_t seq,
                              int (*on_record)(uint64_t seq, const struct record *record, void *user), void *user,
                              struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int rc = prepare(store, "SELECT seq, at_ns, type, job, body FROM record WHERE seq > ? ORDER BY seq", &row, err);

    if (rc)
        return rc;
    sqlite3_bind_int64(row, 1, (sqlite3_int64)seq);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct record record;

        rc = load_record(store, row, ++seq, &record, err);
        if (rc)
            return rc;
        rc = on_record ? on_record(seq, &record, user) : 0;
        if (rc) {
            error_set(err, EINVAL, "%s: record %" PRIu64 " (%s) was not accepted: " REMEDY, store->path, seq,
                      record_type_name(record.type));
            return rc;
        }
    }
    return end_of_rows(store, rc, err);
}

/* The newest snapshot, else an older one, and the records after it. */
#define TEXT                                                                                                           \
    "coalesce((SELECT group_concat(body, '') FROM"                                                                     \
    " (SELECT part.body FROM part WHERE part.seq = snapshot.seq ORDER BY number)), '') || body"
#define FROM_NEWEST "SELECT seq, " TEXT " FROM snapshot ORDER BY seq DESC"

/* The whole log where it is there; else the oldest snapshot, which its forgotten beginning led to. */
#define FROM_OLDEST                                                                                                    \
    "SELECT seq, " TEXT " FROM snapshot WHERE NOT EXISTS (SELECT 1 FROM record WHERE seq = 1) ORDER BY seq LIMIT 1"

static int load_from(const struct store *store, const char *snapshots,
                     int (*on_record)(uint64_t seq, const struct record *record, void *user), void *user,
                     struct error *err)
{
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    uint64_t seq;
    int rc = find_snapshot(store, snapshots, &seq, &snapshot, err);

    if (!rc)
        rc = hand_out_snapshot(store, seq, &snapshot, on_record, user, err);
    return rc ? rc : load_records_after(store, seq, on_record, user, err);
}

/* ---- Inspection ---- */

struct inspection {
    const struct store *store;
    const struct store_inspector *to;
    sqlite3_stmt *snapshots; /* behind the log's beginning, in order */
    bool more;               /* its row is one that is still to come */
    struct error *err;
    int rc; /* of the taker */
};

static int inspect_spec(uint64_t job, const char *json, void *user)
{
    struct inspection *inspection = user;

    inspection->rc = inspection->to->on_spec(job, json, inspection->to->user, inspection->err);
    return inspection->rc;
}

static int inspect_job(uint64_t job, uint64_t seq, const char *json, void *user)
{
    struct inspection *inspection = user;

    (void)seq;
    inspection->rc = inspection->to->on_job(job, json, inspection->to->user, inspection->err);
    return inspection->rc;
}

/* Hands out the snapshots that were made after record `seq`. */
static int inspect_snapshots(struct inspection *inspection, uint64_t seq)
{
    while (inspection->more && (uint64_t)sqlite3_column_int64(inspection->snapshots, 0) == seq) {
        CLEANUP(record_list_release) struct record_list list = {0};

        if (!snapshot_parse(text_column(inspection->snapshots, 1), &list))
            inspection->rc = error_set(inspection->err, EBADMSG,
                                       "%s: the snapshot after record %" PRIu64 " is damaged: it will be passed over",
                                       inspection->store->path, seq);
        else if (inspection->to->on_snapshot)
            inspection->rc = inspection->to->on_snapshot(seq, &list, inspection->to->user, inspection->err);
        if (inspection->rc)
            return inspection->rc;
        inspection->more = sqlite3_step(inspection->snapshots) == SQLITE_ROW;
    }
    return 0;
}

static int inspect_record(uint64_t seq, const struct record *record, void *user)
{
    struct inspection *inspection = user;

    inspection->rc =
        inspection->to->on_record ? inspection->to->on_record(seq, record, inspection->to->user, inspection->err) : 0;
    return inspection->rc || record_is_state(record->type) ? inspection->rc : inspect_snapshots(inspection, seq);
}

static int check_pages(const struct store *store, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int rc = prepare(store, "PRAGMA integrity_check(1)", &row, err);

    if (rc)
        return rc;
    if (sqlite3_step(row) != SQLITE_ROW)
        return store_sqlite_error(store->db, store->path, "be checked", err);
    if (strcmp(text_column(row, 0), "ok") == 0)
        return 0;
    error_set(err, EBADMSG, "%s: is damaged: %.200s: restore it from a backup", store->path, text_column(row, 0));
    error_make_printable(err); /* it is of several lines */
    return -EBADMSG;
}

static int inspect(struct inspection *inspection, struct error *err)
{
    const struct store *store = inspection->store;
    struct error mine = {{0}}; /* the load's words on a taker's refusal: the taker's own are better */
    int rc = check_pages(store, err);

    if (!rc)
        rc = prepare(store,
                     "SELECT seq, " TEXT " FROM snapshot WHERE EXISTS (SELECT 1 FROM record WHERE seq = 1)"
                     " OR seq > (SELECT min(seq) FROM snapshot) ORDER BY seq",
                     &inspection->snapshots, err);
    if (rc)
        return rc;
    inspection->more = sqlite3_step(inspection->snapshots) == SQLITE_ROW;
    rc = load_texts(store, "spec", "SELECT job, body FROM spec WHERE ? ORDER BY job", 1,
                    inspection->to->on_spec ? inspect_spec : NULL, NULL, inspection, &mine);
    if (!rc)
        rc = load_texts(store, "state", "SELECT job, body, seq FROM job WHERE ? ORDER BY job", 1, NULL,
                        inspection->to->on_job ? inspect_job : NULL, inspection, &mine);
    if (!rc)
        rc = load_from(store, FROM_OLDEST, inspect_record, inspection, &mine);
    if (rc && !inspection->rc)
        *err = mine;
    if (!rc && inspection->more)
        rc = error_set(err, EBADMSG, "%s: a snapshot after record %" PRId64 " has no such record before it",
                       store->path, (int64_t)sqlite3_column_int64(inspection->snapshots, 0));
    return rc;
}

int store_inspect(const char *directory, const struct store_inspector *inspector, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    struct store store = {.path = path};
    struct inspection inspection = {.store = &store, .to = inspector, .err = err};
    int rc = store_database_open_to_read(path, &store.db, err);

    if (rc)
        return rc;
    rc = store_database_hold(store.db, path, err);
    if (!rc)
        rc = inspect(&inspection, err);
    sqlite3_finalize(inspection.snapshots);
    sqlite3_close(store.db);
    return rc;
}

/* Unfinished ones, and of each user the latest of the others, as many as of any other user. Job numbers grow, so that
 * the latest are those with the highest. */
#define RECENT                                                                                                         \
    " WHERE job NOT IN (SELECT job FROM (SELECT job,"                                                                  \
    " row_number() OVER (PARTITION BY uid ORDER BY job DESC) AS rank"                                                  \
    " FROM job WHERE ended_ns >= 0) ORDER BY rank, job DESC LIMIT -1 OFFSET ?)"

int store_load(struct store *store, const struct store_taker *taker, struct error *err)
{
    int rc;

    if (store->committed)
        return error_set(err, EBUSY, "%s: is in use: it can be loaded only before the first commit", store->path);
    rc = load_texts(store, "spec", "SELECT job, body FROM spec" RECENT " ORDER BY job", taker->most_ended,
                    taker->on_spec, NULL, taker->user, err);
    if (!rc)
        rc = load_texts(store, "state", "SELECT job, body, seq FROM job" RECENT " ORDER BY job", taker->most_ended,
                        NULL, taker->on_job, taker->user, err);
    return rc ? rc : load_from(store, FROM_NEWEST, taker->on_record, taker->user, err);
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
        rc =
            on_account(text_column(row, 0), (uint64_t)sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2), user);
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

int64_t store_request_now_s(void)
{
    return nodetime_to_wall_ns(nodetime_now_ns()) / NS_PER_SEC;
}

int store_load_requests(struct store *store, int (*on_request)(const struct store_request *request, void *user),
                        void *user, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int rc;

    if (store->committed)
        return error_set(err, EBUSY, "%s: is in use: it can be loaded only before the first commit", store->path);
    rc = prepare(store,
                 "SELECT id, uid, digest, first, count, at_unix_s FROM request"
                 " WHERE at_unix_s >= ? ORDER BY first",
                 &row, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(row, 1, store_request_now_s() - STORE_REQUEST_KEPT_S);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_request request = {.id = text_column(row, 0),
                                        .uid = (uint32_t)sqlite3_column_int64(row, 1),
                                        .digest = (uint64_t)sqlite3_column_int64(row, 2),
                                        .first = (uint64_t)sqlite3_column_int64(row, 3),
                                        .count = (uint32_t)sqlite3_column_int64(row, 4),
                                        .at_s = sqlite3_column_int64(row, 5)};

        rc = on_request(&request, user);
        if (rc)
            return error_set(err, -rc, "%s: request '%.64s' was not accepted", store->path, request.id);
    }
    return end_of_rows(store, rc, err);
}

int store_read(const char *directory, int (*on_record)(uint64_t seq, const struct record *record, void *user),
               void *user, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    struct store store = {.path = path};
    int rc = store_database_open_to_read(path, &store.db, err);

    if (rc)
        return rc;
    rc = store_database_hold(store.db, path, err);
    if (!rc)
        rc = load_from(&store, FROM_OLDEST, on_record, user, err);
    sqlite3_close(store.db);
    return rc;
}
