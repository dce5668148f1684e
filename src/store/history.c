/* The rows and sums of the accounting: how they are batched, written and loaded. */
#include "store/history.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "store/store_internal.h"

const int64_t history_wait_bounds_s[HISTORY_WAIT_BOUNDS] = {1,    10,    60,    300,   900,    1800,  3600,
                                                            7200, 14400, 28800, 86400, 259200, 604800};

/* ---- Sums ---- */

void history_add(int64_t *sum, int64_t more)
{
    if (more > 0 && __builtin_add_overflow(*sum, more, sum))
        *sum = INT64_MAX;
}

void history_sums_add(struct history_sums *sums, const struct store_history *row)
{
    uint32_t state = JOB_COMPLETED;

    while (state <= JOB_LAST_ENDED && strcmp(row->state, job_state_name(state)) != 0)
        state++;
    if (state <= JOB_LAST_ENDED)
        sums->ended[state]++;
    if (row->wait_ns >= 0) {
        sums->launched++;
        history_add(&sums->wait_ns, row->wait_ns);
        for (size_t i = 0; i < HISTORY_WAIT_BOUNDS; i++)
            sums->wait_le[i] += row->wait_ns <= history_wait_bounds_s[i] * INT64_C(1000000000);
    }
    history_add(&sums->gpu_ns, row->gpu_ns);
    history_add(&sums->memory_mib_ms, row->memory_mib_ms);
    history_add(&sums->energy_mj, row->energy_mj);
    history_add(&sums->oom_crashes, row->oom_crashes);
    history_add(&sums->handle_crashes, row->handle_crashes);
    history_add(&sums->retries, row->retries);
}

/* ---- Columns, in their order in the database ---- */

enum column_kind { COLUMN_INTEGER, COLUMN_UNSIGNED, COLUMN_TEXT, COLUMN_OPTIONAL };

static const struct column {
    const char *name;
    enum column_kind kind;
    size_t offset;
    bool summed; /* sums are made of it, or are made by it */
} columns[] = {
#define SUMMED true
#define ALONE  false
#define COLUMN(type, member, kind, sums, form, name)                                                                   \
    {#member, COLUMN_##kind, offsetof(struct store_history, member), sums},
#include "store/history.def"
};

void store_history_want(struct history_want *want, bool sums, const char *text)
{
    want->count = 0;
    for (size_t i = 0; i < array_size(columns); i++)
        if (!sums || columns[i].summed || (text && strcmp(columns[i].name, text) == 0))
            want->columns[want->count++] = (uint8_t)i;
}

void store_history_put_columns(const struct history_want *want, struct strbuf *sql)
{
    for (size_t i = 0; i < want->count; i++)
        strbuf_printf(sql, "%s%s", i ? ", " : "", columns[want->columns[i]].name);
}

bool store_history_from_row(const struct history_want *want, sqlite3_stmt *row, struct store_history *out)
{
    bool whole = true;

    for (size_t i = 0; i < want->count; i++) {
        const struct column *column = &columns[want->columns[i]];
        void *at = (char *)out + column->offset;

        if (column->kind == COLUMN_UNSIGNED) {
            *(uint32_t *)at = (uint32_t)sqlite3_column_int64(row, (int)i);
        } else if (column->kind == COLUMN_INTEGER) {
            *(int64_t *)at = sqlite3_column_int64(row, (int)i);
        } else {
            *(const char **)at = (const char *)sqlite3_column_text(row, (int)i);
            whole = whole && (*(const char **)at || column->kind == COLUMN_OPTIONAL);
        }
    }
    return whole;
}

static bool is_text(const struct column *column)
{
    return column->kind == COLUMN_TEXT || column->kind == COLUMN_OPTIONAL;
}

static const char *text_of(const struct store_history *row, const struct column *column)
{
    return *(const char *const *)((const char *)row + column->offset);
}

static int64_t integer_of(const struct store_history *row, const struct column *column)
{
    const void *at = (const char *)row + column->offset;

    return column->kind == COLUMN_UNSIGNED ? (int64_t) * (const uint32_t *)at : *(const int64_t *)at;
}

/* ---- Batches: the row's bytes, then its texts, each with its NUL ---- */

void store_batch_history(struct store_batch *batch, const struct store_history *row)
{
    store_batch_begin(batch, (struct store_row){.kind = ROW_HISTORY, .job = row->job});
    if (batch->status)
        return;
    strbuf_append(&batch->bodies, row, sizeof *row);
    for (size_t i = 0; i < array_size(columns); i++) {
        const char *text = is_text(&columns[i]) ? text_of(row, &columns[i]) : NULL;
        if (text)
            strbuf_append(&batch->bodies, text, strlen(text) + 1);
    }
    store_batch_end(batch);
}

void store_batch_history_energy(struct store_batch *batch, uint64_t job, int64_t mj)
{
    store_batch_begin(batch, (struct store_row){.kind = ROW_HISTORY_ENERGY, .job = job, .mj = mj});
    store_batch_end(batch);
}

void store_batch_forget_history(struct store_batch *batch, int64_t before_ns, uint32_t most)
{
    store_batch_begin(batch, (struct store_row){.kind = ROW_FORGET_HISTORY, .at_ns = before_ns, .type = most});
    store_batch_end(batch);
}

void store_batch_held(struct store_batch *batch, const struct store_held *held)
{
    store_batch_begin(batch, (struct store_row){.kind = ROW_HELD, .job = held->job});
    if (batch->status)
        return;
    strbuf_append(&batch->bodies, held, sizeof *held);
    store_batch_end(batch);
}

/* ---- The writer's ---- */

int store_write_history(struct store *store, const char *body, struct error *err)
{
    sqlite3_stmt *put = store->put_history;
    struct store_history row;
    int rc;

    memcpy(&row, body, sizeof row);
    body += sizeof row;
    for (size_t i = 0; i < array_size(columns); i++) {
        if (!is_text(&columns[i])) {
            sqlite3_bind_int64(put, (int)i + 1, integer_of(&row, &columns[i]));
        } else if (text_of(&row, &columns[i])) {
            sqlite3_bind_text(put, (int)i + 1, body, -1, SQLITE_STATIC);
            body += strlen(body) + 1;
        }
    }
    rc = store_step(store, put, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(store->drop_held, 1, (sqlite3_int64)row.job);
    return store_step(store, store->drop_held, err);
}

int store_write_history_energy(struct store *store, uint64_t job, int64_t mj, struct error *err)
{
    sqlite3_bind_int64(store->put_history_energy, 1, (sqlite3_int64)job);
    sqlite3_bind_int64(store->put_history_energy, 2, mj);
    return store_step(store, store->put_history_energy, err);
}

int store_forget_history(struct store *store, int64_t before_ns, uint32_t most, struct error *err)
{
    int rc;

    sqlite3_bind_int64(store->forget_history, 1, before_ns);
    sqlite3_bind_int64(store->forget_history, 2, most);
    rc = store_step(store, store->forget_history, err);
    store->more_to_forget |= (uint32_t)sqlite3_changes(store->db) >= most;
    return rc;
}

int store_write_held(struct store *store, const char *body, struct error *err)
{
    struct store_held held;

    memcpy(&held, body, sizeof held);
    sqlite3_bind_int64(store->put_held, 1, (sqlite3_int64)held.job);
    sqlite3_bind_int64(store->put_held, 2, held.at_ns);
    sqlite3_bind_int64(store->put_held, 3, held.bytes);
    sqlite3_bind_int64(store->put_held, 4, held.measured_bytes);
    sqlite3_bind_int64(store->put_held, 5, held.mib_ms);
    sqlite3_bind_int64(store->put_held, 6, held.measured_mib_ms);
    return store_step(store, store->put_held, err);
}

int store_prepare_history(struct store *store, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    struct history_want all;
    int rc;

    store_history_want(&all, false, NULL);
    strbuf_puts(&sql, "INSERT INTO history (");
    store_history_put_columns(&all, &sql);
    for (size_t i = 0; i < all.count; i++)
        strbuf_puts(&sql, i ? ", ?" : ") VALUES (?");
    strbuf_puts(&sql, ") ON CONFLICT (job) DO NOTHING");
    rc = store_prepare(store, sql.text, &store->put_history, err);
    if (!rc)
        rc = store_prepare(store, "UPDATE history SET energy_mj = ?2 WHERE job = ?1", &store->put_history_energy, err);
    if (!rc)
        rc = store_prepare(store,
                           "DELETE FROM history WHERE job IN"
                           " (SELECT job FROM history WHERE ended_ns < ? ORDER BY ended_ns LIMIT ?)",
                           &store->forget_history, err);
    if (!rc) /* of the record `forgotten` */
        rc = store_prepare(store,
                           "UPDATE history SET workload = '', model = ''"
                           " WHERE (NOT json_extract(?1, '$.of_user') OR uid = json_extract(?1, '$.uid'))"
                           " AND json_extract(?1, '$.workload') IN ('', workload)",
                           &store->forget_learned, err);
    if (!rc)
        rc = store_prepare(store, "REPLACE INTO held VALUES (?, ?, ?, ?, ?, ?)", &store->put_held, err);
    if (!rc)
        rc = store_prepare(store, "DELETE FROM held WHERE job = ?", &store->drop_held, err);
    return rc;
}

void store_release_history(struct store *store)
{
    sqlite3_stmt **const statements[] = {&store->put_history,    &store->put_history_energy, &store->forget_history,
                                         &store->forget_learned, &store->put_held,           &store->drop_held};

    store_release(statements, array_size(statements));
}

/* ---- Loading ---- */

static int begin_load(struct store *store, const char *sql, sqlite3_stmt **row, struct error *err)
{
    if (store->committed)
        return error_set(err, EBUSY, "%s: is in use: it can be loaded only before the first commit", store->path);
    return sqlite3_prepare_v2(store->db, sql, -1, row, NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(store->db, store->path, "be read", err);
}

/* No sum is negative but in a damaged store, which a later commit would not mend. */
static int64_t next_sum(sqlite3_stmt *row, int *column)
{
    int64_t sum = sqlite3_column_int64(row, (*column)++);

    return sum < 0 ? 0 : sum;
}

static void read_sums(sqlite3_stmt *row, struct history_sums *sums)
{
    int column = 2;

    *sums = (struct history_sums){0};
    for (uint32_t state = JOB_COMPLETED; state <= JOB_LAST_ENDED; state++)
        sums->ended[state] = next_sum(row, &column);
    sums->launched = next_sum(row, &column);
    sums->wait_ns = next_sum(row, &column);
    for (size_t i = 0; i < HISTORY_WAIT_BOUNDS; i++)
        sums->wait_le[i] = next_sum(row, &column);
    sums->gpu_ns = next_sum(row, &column);
    sums->memory_mib_ms = next_sum(row, &column);
    sums->energy_mj = next_sum(row, &column);
    sums->oom_crashes = next_sum(row, &column);
    sums->handle_crashes = next_sum(row, &column);
    sums->retries = next_sum(row, &column);
}

/* As read_sums reads them. */
static const char select_sums[] =
    "SELECT uid, user, completed, failed, gpu_oom, cancelled, lost, refused, timeout, returned, expired, launched,"
    " wait_ns, wait_1s, wait_10s, wait_1m, wait_5m, wait_15m, wait_30m, wait_1h, wait_2h, wait_4h, wait_8h, wait_1d,"
    " wait_3d, wait_7d, gpu_ns, memory_mib_ms, energy_mj, oom_crashes, handle_crashes, retries"
    " FROM total ORDER BY uid";
_Static_assert(JOB_LAST_ENDED - JOB_COMPLETED == 8, "a state in which jobs end has a column in `total`");

int store_load_sums(struct store *store,
                    int (*take)(uint32_t uid, const char *user, const struct history_sums *sums, void *user_data),
                    void *user_data, struct error *err)
{
    sqlite3_stmt *row = NULL;
    int code, rc = begin_load(store, select_sums, &row, err);

    while (!rc && (code = sqlite3_step(row)) != SQLITE_DONE) {
        struct history_sums sums;
        const char *user = (const char *)sqlite3_column_text(row, 1);

        if (code != SQLITE_ROW) {
            rc = store_sqlite_error(store->db, store->path, "be read", err);
            break;
        }
        read_sums(row, &sums);
        rc = take((uint32_t)sqlite3_column_int64(row, 0), user ? user : "", &sums, user_data);
    }
    sqlite3_finalize(row);
    return rc;
}

int store_load_held(struct store *store, int (*take)(const struct store_held *held, void *user), void *user,
                    struct error *err)
{
    sqlite3_stmt *row = NULL;
    int code, rc = begin_load(store, "SELECT * FROM held ORDER BY job", &row, err);

    while (!rc && (code = sqlite3_step(row)) != SQLITE_DONE) {
        struct store_held held;

        if (code != SQLITE_ROW) {
            rc = store_sqlite_error(store->db, store->path, "be read", err);
            break;
        }
        held = (struct store_held){.job = (uint64_t)sqlite3_column_int64(row, 0),
                                   .at_ns = sqlite3_column_int64(row, 1),
                                   .bytes = sqlite3_column_int64(row, 2),
                                   .measured_bytes = sqlite3_column_int64(row, 3),
                                   .mib_ms = sqlite3_column_int64(row, 4),
                                   .measured_mib_ms = sqlite3_column_int64(row, 5)};
        rc = take(&held, user);
    }
    sqlite3_finalize(row);
    return rc;
}
