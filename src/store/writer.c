/* The thread that writes: it takes all that is queued, makes one transaction of it, and hands it back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/memory.h"
#include "store/store_internal.h"

/* The failure that is still to be told to the owner: its batches, and those queued before it could know, fail too. */
struct failure {
    uint64_t epoch; /* 0: none */
    int status;
    struct error error;
};

int store_step(struct store *store, sqlite3_stmt *statement, struct error *err)
{
    int rc = sqlite3_step(statement) == SQLITE_DONE ? 0 : store_sqlite_error(store->db, store->path, "store", err);

    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return rc;
}

static int execute(struct store *store, const char *sql, struct error *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(store->db, store->path, "store", err);
}

/* Parts of snapshots that are gone, or never were; some at a time: each is of many pages. */
static int forget_parts(struct store *store, uint64_t seq, int most, struct error *err)
{
    int rc;

    sqlite3_bind_int64(store->forget_parts, 1, (sqlite3_int64)seq); /* it is being written */
    sqlite3_bind_int(store->forget_parts, 2, most);
    rc = store_step(store, store->forget_parts, err);
    store->more_to_forget |= sqlite3_changes(store->db) >= most;
    return rc;
}

/* Without a snapshot before them, records would be of no use: they go up to the first, and it stays. So snapshots go
 * first. A number that a job had is never given again. Whatever has reached `most` may have more. */
static int forget(struct store *store, uint64_t seq, int64_t before_ns, uint32_t most, struct error *err)
{
    static const char jobs[] = "SELECT job FROM job WHERE ended_ns >= 0 AND ended_ns < ?1 ORDER BY ended_ns, job";
    CLEANUP(free_ptr) char *of_jobs = xasprintf("job IN (%s LIMIT ?2)", jobs);
    const struct {
        const char *table, *which;
        int64_t before;
    } steps[] = {
        {"spec", of_jobs, before_ns},
        {"energy", of_jobs, before_ns},
        {"job", of_jobs, before_ns}, /* behind those that ask it */
        {"snapshot",
         "seq IN (SELECT seq FROM snapshot WHERE seq < (SELECT max(seq) FROM snapshot WHERE at_ns < ?1)"
         " ORDER BY seq LIMIT ?2)",
         before_ns},
        {"record",
         "seq IN (SELECT seq FROM record WHERE seq <= (SELECT seq FROM snapshot WHERE at_ns < ?1 AND"
         " seq = (SELECT min(seq) FROM snapshot)) ORDER BY seq LIMIT ?2)",
         before_ns},
        {"request", "(uid, id) IN (SELECT uid, id FROM request WHERE at_unix_s < ?1 LIMIT ?2)",
         store_request_now_s() - STORE_REQUEST_KEPT_S},
    };
    int rc = execute(store, /* the submission of an ended job may be gone before the job is */
                     "INSERT OR REPLACE INTO meta SELECT 'last_job', max(job) FROM (SELECT job FROM spec UNION ALL"
                     " SELECT job FROM job UNION ALL SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_job')"
                     " HAVING max(job) NOT NULL",
                     err);

    store->more_to_forget = false;
    for (size_t i = 0; !rc && i < array_size(steps); i++) {
        CLEANUP(free_ptr) char *sql = xasprintf("DELETE FROM %s WHERE %s", steps[i].table, steps[i].which);
        sqlite3_stmt *statement = NULL;

        rc = store_prepare(store, sql, &statement, err);
        if (rc)
            break;
        sqlite3_bind_int64(statement, 1, steps[i].before);
        sqlite3_bind_int64(statement, 2, most);
        rc = store_step(store, statement, err);
        store->more_to_forget |= (uint32_t)sqlite3_changes(store->db) >= most;
        sqlite3_finalize(statement);
    }
    return rc ? rc : forget_parts(store, seq, 2, err);
}

static int write_record(struct store *store, const struct store_row *row, const char *body, struct error *err)
{
    sqlite3_bind_int64(store->insert_record, 1, (sqlite3_int64)store->seq + 1);
    sqlite3_bind_int64(store->insert_record, 2, row->at_ns);
    sqlite3_bind_text(store->insert_record, 3, record_type_name(row->type), -1, SQLITE_STATIC);
    sqlite3_bind_int64(store->insert_record, 4, (sqlite3_int64)row->job);
    sqlite3_bind_text64(store->insert_record, 5, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
    store->seq++;
    return store_step(store, store->insert_record, err);
}

/* The accounting keeps its rows, but they teach nothing any more. */
static int write_forgotten(struct store *store, const struct store_row *row, const char *body, struct error *err)
{
    int rc = write_record(store, row, body, err);

    if (rc)
        return rc;
    sqlite3_bind_text64(store->forget_learned, 1, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
    return store_step(store, store->forget_learned, err);
}

static int write_part(struct store *store, uint64_t seq, const struct store_row *row, const char *body,
                      struct error *err)
{
    int rc;

    sqlite3_bind_int64(store->insert_part, 1, (sqlite3_int64)seq);
    sqlite3_bind_int64(store->insert_part, 2, row->type);
    sqlite3_bind_text64(store->insert_part, 3, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
    rc = store_step(store, store->insert_part, err);
    return rc ? rc : forget_parts(store, seq, 2, err);
}

static int write_snapshot(struct store *store, uint64_t seq, const struct store_row *row, const char *body,
                          struct error *err)
{
    int rc;

    sqlite3_bind_int64(store->insert_snapshot, 1, (sqlite3_int64)seq);
    sqlite3_bind_int64(store->insert_snapshot, 2, row->at_ns);
    sqlite3_bind_int64(store->insert_snapshot, 3, row->at_ns - row->spacing_ns);
    sqlite3_bind_text64(store->insert_snapshot, 4, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
    rc = store_step(store, store->insert_snapshot, err);
    return rc ? rc
              : execute(store,
                        "DELETE FROM snapshot WHERE NOT kept AND seq NOT IN"
                        " (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 2)",
                        err);
}

static int write_request(struct store *store, const struct store_row *row, const char *id, struct error *err)
{
    sqlite3_bind_int64(store->put_request, 1, row->uid);
    sqlite3_bind_text64(store->put_request, 2, id, row->length, SQLITE_STATIC, SQLITE_UTF8);
    sqlite3_bind_int64(store->put_request, 3, (sqlite3_int64)row->digest);
    sqlite3_bind_int64(store->put_request, 4, (sqlite3_int64)row->job);
    sqlite3_bind_int64(store->put_request, 5, row->type);
    sqlite3_bind_int64(store->put_request, 6, row->at_ns);
    return store_step(store, store->put_request, err);
}

static int write_row(struct store *store, const struct store_batch *batch, const struct store_row *row,
                     struct error *err)
{
    const char *body = batch->bodies.text + row->offset;
    const uint64_t seq = batch->marked ? store->marked_seq : store->seq;

    switch (row->kind) {
    case ROW_SPEC:
        store->mark.last_job = row->job > store->mark.last_job ? row->job : store->mark.last_job;
        sqlite3_bind_int64(store->insert_spec, 1, (sqlite3_int64)row->job);
        sqlite3_bind_text64(store->insert_spec, 2, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
        return store_step(store, store->insert_spec, err);
    case ROW_NO_ENVIRONMENT:
        sqlite3_bind_int64(store->drop_environment, 1, (sqlite3_int64)row->job);
        return store_step(store, store->drop_environment, err);
    case ROW_NO_SPEC:
        sqlite3_bind_int64(store->drop_spec, 1, (sqlite3_int64)row->job);
        return store_step(store, store->drop_spec, err);
    case ROW_JOB:
        sqlite3_bind_int64(store->insert_job, 1, (sqlite3_int64)row->job);
        sqlite3_bind_int64(store->insert_job, 2, row->at_ns);
        sqlite3_bind_text64(store->insert_job, 3, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_int64(store->insert_job, 4, (sqlite3_int64)seq);
        sqlite3_bind_int64(store->insert_job, 5, row->uid);
        return store_step(store, store->insert_job, err);
    case ROW_SNAPSHOT:
        return write_snapshot(store, seq, row, body, err);
    case ROW_PART:
        return write_part(store, seq, row, body, err);
    case ROW_MARK:
        store->marked_seq = store->seq;
        return 0;
    case ROW_FORGET:
        return forget(store, seq, row->at_ns, row->type, err);
    case ROW_METER:
        sqlite3_bind_text64(store->put_meter, 1, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_int64(store->put_meter, 2, row->at_ns);
        sqlite3_bind_int64(store->put_meter, 3, row->mj);
        sqlite3_bind_int64(store->put_meter, 4, row->idle_mw);
        return store_step(store, store->put_meter, err);
    case ROW_ENERGY:
        sqlite3_bind_text64(store->put_energy, 1, body, row->length, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_int64(store->put_energy, 2, (sqlite3_int64)row->job);
        sqlite3_bind_int64(store->put_energy, 3, row->mj);
        return store_step(store, store->put_energy, err);
    case ROW_HISTORY:
        return store_write_history(store, body, err);
    case ROW_HISTORY_ENERGY:
        return store_write_history_energy(store, row->job, row->mj, err);
    case ROW_FORGET_HISTORY:
        return store_forget_history(store, row->at_ns, row->type, err);
    case ROW_HELD:
        return store_write_held(store, body, err);
    case ROW_REQUEST:
        return write_request(store, row, body, err);
    default:
        return row->type == RECORD_FORGOTTEN ? write_forgotten(store, row, body, err)
                                             : write_record(store, row, body, err);
    }
}

/* SQLite keeps the pages that many rows needed. */
#define MANY_ROWS 1000

static int write_all(struct store *store, const struct store_batch *batch, struct error *err)
{
    uint64_t seq = store->seq, last_job = store->mark.last_job;
    size_t rows = 0;
    int rc = store_step(store, store->begin, err);

    for (; !rc && batch; rows += batch->count, batch = batch->next)
        for (size_t i = 0; !rc && !batch->status && i < batch->count; i++)
            rc = write_row(store, batch, &batch->rows[i], err);
    if (!rc)
        rc = store_step(store, store->commit, err);
    if (!rc)
        store_marking_committed(store);
    if (rows >= MANY_ROWS)
        sqlite3_db_release_memory(store->db);
    /* SQLite has rolled back on its own after some errors, not after others. */
    if (rc) {
        store->seq = seq;
        store->mark.last_job = last_job;
    }
    if (rc && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* A batch that cannot be stored as it is fails like a transaction: those behind it may build on it. Returns whether
 * anything is left to write. */
static bool fence(struct store_batch *batch, struct failure *failure)
{
    bool any = false;

    for (; batch; batch = batch->next) {
        if (batch->epoch > failure->epoch && batch->status)
            *failure = (struct failure){batch->epoch, batch->status, batch->error};
        else if (batch->epoch <= failure->epoch) {
            batch->status = failure->status;
            batch->error = failure->error;
        }
        any = any || !batch->status;
    }
    return any;
}

static void write_group(struct store *store, struct store_batch *head, struct failure *failure)
{
    struct store_batch *batch;
    struct error err = {{0}};
    int rc;

    if (!fence(head, failure))
        return;
    rc = store_heal(store, &err);
    if (!rc)
        rc = write_all(store, head, &err);
    if (!rc)
        return;
    for (batch = head; batch; batch = batch->next) {
        if (batch->status)
            continue;
        *failure = (struct failure){batch->epoch, rc, err};
        batch->status = rc;
        batch->error = err;
    }
}

/* Without a transaction it is looked as often whether others have removed something. */
#define HEAL_S 3

void *store_writer_main(void *argument)
{
    struct store *store = argument;
    struct failure failure = {0};
    struct timespec until;
    struct error err;

    pthread_mutex_lock(&store->mutex);
    for (;;) {
        struct batch_queue group;
        int code = 0;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += HEAL_S;
        while (!store->queued.head && !store->closing && code != ETIMEDOUT)
            code = pthread_cond_timedwait(&store->wake, &store->mutex, &until);
        if (!store->queued.head && !store->closing) {
            pthread_mutex_unlock(&store->mutex);
            store_heal(store, &err);
            pthread_mutex_lock(&store->mutex);
            continue;
        }
        if (!store->queued.head)
            break;
        group = store->queued;
        store->queued = (struct batch_queue){NULL, &store->queued.head};
        store->transactions++;
        pthread_mutex_unlock(&store->mutex);

        write_group(store, group.head, &failure);

        pthread_mutex_lock(&store->mutex);
        *store->finished.tail = group.head;
        store->finished.tail = group.tail;
        eventfd_write(store->event_fd, 1);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}
