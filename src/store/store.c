#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "store/store_internal.h"

int store_check_directory(const char *directory, struct error *err)
{
    struct stat st;

    if (stat(directory, &st) < 0)
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(err, ENOTDIR, "%s: is not a directory: give carmad a state directory of its own", directory);
    if (st.st_uid != geteuid())
        return error_set(err, EPERM, "%s: belongs to uid %u: give carmad a state directory of its own", directory,
                         (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, EPERM, "%s: others may write there (mode %04o): chmod 700 %s", directory,
                         (unsigned)(st.st_mode & 07777), directory);
    return 0;
}

/* New names in a directory are safe only once the directory is. */
static int sync_directory(const char *directory, struct error *err)
{
    CLEANUP(close_fd) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    return 0;
}

int store_prepare(struct store *store, const char *sql, sqlite3_stmt **statement, struct error *err)
{
    return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) == SQLITE_OK
               ? 0
               : store_sqlite_error(store->db, store->path, "be used", err);
}

/* The thread takes no signal: they are the owner's. */
static int start_thread(struct store *store, struct error *err)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&store->thread, NULL, store_writer_main, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        return error_set(err, rc, "%s: no thread can be started: %s", store->path, strerror(rc));
    store->thread_runs = true;
    return 0;
}

int store_prepare_statements(struct store *store, struct error *err)
{
    int rc = store_prepare(store, "BEGIN IMMEDIATE", &store->begin, err);

    if (!rc)
        rc = store_prepare(store, "COMMIT", &store->commit, err);
    if (!rc)
        rc = store_prepare(store, "INSERT INTO record (seq, at_ns, type, job, body) VALUES (?, ?, ?, ?, ?)",
                           &store->insert_record, err);
    if (!rc)
        rc = store_prepare(store, "INSERT OR REPLACE INTO spec (job, body) VALUES (?, ?)", &store->insert_spec, err);
    if (!rc)
        rc = store_prepare(
            store, "UPDATE spec SET body = json_remove(body, '$.environment') WHERE job = ? AND json_valid(body)",
            &store->drop_environment, err);
    if (!rc)
        rc = store_prepare(store, "DELETE FROM spec WHERE job = ?", &store->drop_spec, err);
    if (!rc)
        rc = store_prepare(store, "REPLACE INTO meter (gpu, at_ns, counter_mj, idle_mw) VALUES (?, ?, ?, ?)",
                           &store->put_meter, err);
    if (!rc)
        rc = store_prepare(store, "REPLACE INTO energy (gpu, job, mj) VALUES (?, ?, ?)", &store->put_energy, err);
    if (!rc)
        rc = store_prepare(
            store,
            "INSERT INTO job (job, ended_ns, body, seq, uid) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (job)"
            " DO UPDATE SET ended_ns = ?2, body = ?3, seq = ?4, uid = ?5 WHERE seq <= ?4",
            &store->insert_job, err);
    if (!rc)
        rc = store_prepare(store, "INSERT OR REPLACE INTO part (seq, number, body) VALUES (?, ?, ?)",
                           &store->insert_part, err);
    if (!rc)
        rc = store_prepare(store,
                           "DELETE FROM part WHERE (seq, number) IN (SELECT seq, number FROM part"
                           " WHERE seq <> ?1 AND seq NOT IN (SELECT seq FROM snapshot) LIMIT ?2)",
                           &store->forget_parts, err);
    if (!rc)
        rc = store_prepare(store,
                           "INSERT OR REPLACE INTO snapshot (seq, at_ns, kept, body)"
                           " VALUES (?1, ?2, NOT EXISTS (SELECT 1 FROM snapshot WHERE kept AND at_ns > ?3), ?4)",
                           &store->insert_snapshot, err);
    if (!rc)
        rc = store_prepare(store,
                           "REPLACE INTO request (uid, id, digest, first, count, at_unix_s) VALUES (?, ?, ?, ?, ?, ?)",
                           &store->put_request, err);
    if (!rc)
        rc = store_prepare_history(store, err);
    return rc;
}

void store_release(sqlite3_stmt **const *statements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sqlite3_finalize(*statements[i]);
        *statements[i] = NULL;
    }
}

void store_release_statements(struct store *store)
{
    sqlite3_stmt **const statements[] = {
        &store->begin,       &store->commit,       &store->insert_record, &store->insert_spec, &store->drop_environment,
        &store->drop_spec,   &store->put_meter,    &store->put_energy,    &store->insert_job,  &store->insert_snapshot,
        &store->insert_part, &store->forget_parts, &store->put_request};

    store_release(statements, array_size(statements));
    store_release_history(store);
}

static int open_all(struct store *store, struct error *err)
{
    int rc = file_make_dirs(store->directory, 0700, err);

    if (!rc)
        rc = store_check_directory(store->directory, err);
    if (!rc)
        rc = store_lock(store->directory, &store->lock_fd, err);
    if (!rc)
        rc = store_lock_directory(store->directory, &store->directory_fd, err);
    if (!rc)
        rc = store_marking_check(store, err);
    if (!rc)
        rc = store_open_database(store, err);
    if (!rc)
        rc = store_read_last(store, err);
    if (!rc)
        rc = store_marking_begin(store, err);
    if (!rc)
        rc = sync_directory(store->directory, err);
    if (rc)
        return rc;
    store->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (store->event_fd < 0)
        return error_set(err, errno, "%s: no event descriptor: %s", store->path, strerror(errno));
    return start_thread(store, err);
}

int store_open(const char *directory, struct store **opened, struct error *err)
{
    struct store *store = xcalloc(1, sizeof *store);
    pthread_condattr_t monotonic;
    int rc;

    store->directory = xstrdup(directory);
    store->path = xasprintf("%s/store.db", directory);
    store->lock_fd = store->directory_fd = store->mark_fd = store->wal_fd = -1;
    store->event_fd = -1;
    store->epoch = 1;
    store->queued.tail = &store->queued.head;
    store->finished.tail = &store->finished.head;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    rc = open_all(store, err);
    if (rc)
        store_close(store);
    else
        *opened = store;
    return rc;
}

static void enqueue(struct batch_queue *queue, struct store_batch *batch)
{
    *queue->tail = batch;
    queue->tail = &batch->next;
}

void store_commit(struct store *store, struct store_batch *batch,
                  void (*done)(int status, const char *error_text, void *user), void *user)
{
    batch->done = done;
    batch->user = user;
    batch->epoch = store->epoch;
    store->committed = true;
    pthread_mutex_lock(&store->mutex);
    if (store->closing) {
        batch->status = error_set(&batch->error, ESHUTDOWN, "%s: is being closed", store->path);
        enqueue(&store->finished, batch);
    } else {
        enqueue(&store->queued, batch);
        pthread_cond_signal(&store->wake);
    }
    pthread_mutex_unlock(&store->mutex);
}

int store_event_fd(struct store *store)
{
    return store->event_fd;
}

uint64_t store_last_job(const struct store *store)
{
    return store->last_job;
}

uint64_t store_transactions(struct store *store)
{
    uint64_t count;

    pthread_mutex_lock(&store->mutex);
    count = store->transactions;
    pthread_mutex_unlock(&store->mutex);
    return count;
}

static struct store_batch *take_finished(struct store *store)
{
    struct store_batch *head;
    eventfd_t ignored;

    pthread_mutex_lock(&store->mutex);
    (void)eventfd_read(store->event_fd, &ignored);
    head = store->finished.head;
    store->finished = (struct batch_queue){NULL, &store->finished.head};
    pthread_mutex_unlock(&store->mutex);
    return head;
}

void store_dispatch(struct store *store)
{
    struct store_batch *batch = take_finished(store);

    while (batch) {
        struct store_batch *next = batch->next;

        /* From here on the owner knows: its next commits do not build on lost ones. */
        if (batch->status && batch->epoch == store->epoch)
            store->epoch++;
        if (batch->done)
            batch->done(batch->status, batch->status ? batch->error.text : NULL, batch->user);
        store_batch_free(batch);
        batch = next;
    }
}

bool store_has_more_to_forget(const struct store *store)
{
    return store->more_to_forget;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    pthread_mutex_lock(&store->mutex);
    store->closing = true;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
    if (store->thread_runs)
        pthread_join(store->thread, NULL);
    while (store->finished.head)
        store_dispatch(store);
    store_release_statements(store);
    store_marking_end(store);
    sqlite3_close(store->db);
    close_fd(&store->event_fd);
    close_fd(&store->directory_fd);
    close_fd(&store->lock_fd); /* last: the next holder of the lock finds the database at rest */
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    free(store->directory);
    free(store->path);
    free(store->note);
    free(store);
}
