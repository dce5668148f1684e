/* Commits to the store: acknowledged data is on the disk, in order and whole; a failure is told and leaves nothing. */

#include "store/store_internal.h"
#include "store_jobs.h"

STORE_TEST(test_close_commits_what_is_queued)
{
    struct store *store = open_store();
    struct outcome outcome = {0};

    for (uint64_t job = 1; job <= 50; job++)
        commit_job(store, job, &outcome);
    assert_int_equal(store_load(store, &(struct store_taker){0}, &trouble), -EBUSY); /* a load comes first */
    store_close(store);
    assert_int_equal(outcome.count, 50);
    assert_int_equal(reopen_and_load().specs, 50);
}

static void tell(int status, const char *error_text, void *user)
{
    if (status || write(*(int *)user, "x", 1) != 1)
        _exit(1);
}

/* Killed at any moment: acknowledged data is there, and no batch is there in part (which load() sees). */
STORE_TEST(test_killed_while_committing)
{
    int told = 0, said[2];
    pid_t child;

    for (int round = 0; round < 5; round++) {
        struct store *store;
        char byte;

        assert_int_equal(pipe(said), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
            store = open_store();
            uint64_t first = (uint64_t)load(store).specs + 1;
            for (uint64_t job = first;; job++) {
                struct pollfd ready = {.fd = store_event_fd(store), .events = POLLIN};
                struct store_batch *batch = store_batch_new();
                struct record record = record_of(job);
                char spec[64];

                snprintf(spec, sizeof spec, "{\"name\":\"job %" PRIu64 "\"}", job);
                store_batch_record(batch, &record);
                store_batch_spec(batch, job, spec);
                record.type = RECORD_RELEASED;
                store_batch_record(batch, &record);
                store_commit(store, batch, tell, &said[1]);
                poll(&ready, 1, job % 3 ? 0 : -1);
                store_dispatch(store);
                if (job == first + 35) /* all rounds together stay below MANY */
                    for (;;) {
                        poll(&ready, 1, -1);
                        store_dispatch(store);
                    }
            }
        }
        close(said[1]);
        for (int wanted = 3 + round * 5; wanted-- && read(said[0], &byte, 1) == 1;)
            told++;
        kill(child, SIGKILL);
        while (read(said[0], &byte, 1) == 1)
            told++;
        close(said[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        store = open_store();
        struct loaded loaded = load(store);
        store_close(store);
        assert_true(told >= 3 && loaded.specs >= told);
    }
}

/* While one transaction waits for another holder of the database, all batches that come become the next one. */
STORE_TEST(test_group_commit)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    sqlite3 *other;

    assert_int_equal(sqlite3_open(database, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (uint64_t job = 1; job <= MANY; job++) {
        commit_job(store, job, &outcome);
        while (store_transactions(store) == 0)
            usleep(1000);
    }
    assert_int_equal(outcome.count, 0);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    wait_for(store, &outcome, MANY);
    for (int i = 0; i < MANY; i++) { /* in order */
        assert_int_equal(outcome.status[i], 0);
        assert_int_equal(outcome.number[i], i + 1);
    }
    assert_int_equal(store_transactions(store), 2);
    store_close(store);
    assert_int_equal(reopen_and_load().specs, MANY);
}

/* That a power cut loses nothing cannot be tried here; that SQLite is told to see to it, can. */
STORE_TEST(test_synced)
{
    CLEANUP(close_store) struct store *store = open_store();
    sqlite3_stmt *row;

    assert_int_equal(sqlite3_prepare_v2(store->db,
                                        "SELECT synchronous, journal_mode FROM pragma_synchronous, "
                                        "pragma_journal_mode",
                                        -1, &row, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(row, 0), 2); /* FULL */
    assert_string_equal((const char *)sqlite3_column_text(row, 1), "wal");
    sqlite3_finalize(row);
}

static void limit_pages(struct store *store, const char *pages)
{
    char sql[64];

    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %s", pages);
    assert_int_equal(sqlite3_exec(store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void commit_big(struct store *store, uint64_t job, struct outcome *outcome)
{
    struct ticket *ticket = xmalloc(sizeof *ticket);
    struct store_batch *batch = store_batch_new();
    CLEANUP(free_ptr) char *body = xmalloc(MIB + 1);

    memset(body, 'x', MIB);
    body[MIB] = '\0';
    store_batch_spec(batch, job, body);
    *ticket = (struct ticket){outcome, (int)job};
    store_commit(store, batch, on_done, ticket);
}

/* A full disk: the batch, those in its transaction and those behind fail and leave nothing; with room, all is well. */
STORE_TEST(test_full_disk)
{
    struct store *store = open_store();
    struct outcome outcome = {0};

    commit_and_wait(store, 1, &outcome);
    limit_pages(store, "20");
    commit_big(store, 2, &outcome);
    while (store_transactions(store) < 2)
        usleep(1000);
    commit_job(store, 3, &outcome); /* small enough for the room there is, but it may build on 2 */
    usleep(50000);
    commit_job(store, 4, &outcome);
    wait_for(store, &outcome, 4);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(outcome.status[i], -ENOSPC);
        assert_int_equal(outcome.number[i], i + 1);
    }
    assert_non_null(strstr(outcome.text, database));
    assert_non_null(strstr(outcome.text, "full"));
    commit_and_wait(store, 5, &outcome);
    assert_int_equal(outcome.status[4], 0);
    commit_big(store, 6, &outcome);
    wait_for(store, &outcome, 6);
    assert_int_equal(outcome.status[5], -ENOSPC);
    limit_pages(store, "1000000");
    commit_and_wait(store, 6, &outcome);
    assert_int_equal(outcome.status[6], 0);
    store_close(store);
    struct loaded loaded = reopen_and_load();
    assert_int_equal(loaded.specs, 3);
    assert_int_equal(loaded.jobs[1], 5);
    assert_int_equal(loaded.jobs[2], 6);
}

/* A write that the system refuses, as a broken disk would; in a child, since the limit binds all of a process. */
static int live_through_write_errors(void)
{
    struct rlimit limit;
    struct store *store = open_store();
    struct outcome outcome = {0};

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 200000;
    signal(SIGXFSZ, SIG_IGN);
    commit_and_wait(store, 1, &outcome);
    setrlimit(RLIMIT_FSIZE, &limit);
    commit_big(store, 2, &outcome);
    wait_for(store, &outcome, 2);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    commit_and_wait(store, 2, &outcome);
    store_close(store);
    return outcome.status[0] == 0 && outcome.status[1] == -EIO && outcome.status[2] == 0 ? 42 : 1;
}

STORE_TEST(test_write_error)
{
    int status;
    pid_t child = fork();

    if (!child)
        _exit(live_through_write_errors());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    assert_int_equal(reopen_and_load().specs, 2);
}

struct retry {
    struct store *store;
    struct outcome *outcome;
    int status;
    uint64_t job; /* to commit from `done` */
};

static void retry_from_done(int status, const char *error_text, void *user)
{
    struct retry *retry = user;

    retry->status = status;
    commit_job(retry->store, retry->job++, retry->outcome);
}

/* A record that cannot be encoded fails alone with the batches behind it; commits of its `done` are tried afresh. */
STORE_TEST(test_bad_batch)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    struct retry retry = {store, &outcome, 0, 9};
    struct record good = record_of(2), bad = {.type = RECORD_TYPE_COUNT};
    struct store_batch *batch = store_batch_new();

    commit_job(store, 1, &outcome);
    store_batch_record(batch, &good);
    store_batch_record(batch, &bad);
    store_commit(store, batch, retry_from_done, &retry);
    commit_job(store, 3, &outcome);
    wait_for(store, &outcome, 3);
    assert_int_equal(retry.status, -EINVAL);
    assert_int_equal(outcome.status[0], 0);
    assert_int_equal(outcome.number[1], 3);
    assert_int_equal(outcome.status[1], -EINVAL);
    assert_int_equal(outcome.number[2], 9);
    assert_int_equal(outcome.status[2], 0);
    store_close(store);
    assert_int_equal(reopen_and_load().specs, 2);
}

/* A statement that fails ends no transaction by itself: the statements before it are taken back. */
STORE_TEST(test_part_of_a_batch)
{
    struct store *store = open_store();
    struct outcome outcome = {0};

    commit_and_wait(store, 1, &outcome);
    assert_int_equal(sqlite3_exec(store->db,
                                  "CREATE TEMP TRIGGER refuse BEFORE INSERT ON record WHEN new.seq = 4"
                                  " BEGIN SELECT RAISE(ABORT, 'refused'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    commit_and_wait(store, 2, &outcome);
    assert_true(outcome.status[1] < 0);
    assert_int_equal(sqlite3_exec(store->db, "DROP TRIGGER refuse", NULL, NULL, NULL), SQLITE_OK);
    commit_and_wait(store, 3, &outcome);
    assert_int_equal(outcome.status[2], 0);
    store_close(store);
    struct loaded loaded = reopen_and_load();
    assert_int_equal(loaded.specs, 2);
    assert_int_equal(loaded.jobs[1], 3);
}

/* A job that is estimated later has another spec then. */
STORE_TEST(test_spec_anew)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    struct retry retry = {store, &outcome, 0, 2};
    struct store_batch *batch = store_batch_new();

    commit_job(store, 1, &outcome);
    store_batch_spec(batch, 1, "{\"name\":\"job 1\"}");
    store_commit(store, batch, retry_from_done, &retry);
    wait_for(store, &outcome, 2);
    assert_int_equal(retry.status, 0);
    store_close(store);
    assert_int_equal(reopen_and_load().specs, 2);
}

static void commit_late(int status, const char *error_text, void *user)
{
    struct retry *retry = user;

    commit_job(retry->store, retry->job, retry->outcome);
}

STORE_TEST(test_commit_while_closing)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    struct retry retry = {store, &outcome, 0, 2};
    struct record record = record_of(1);
    struct store_batch *batch = store_batch_new();

    store_batch_record(batch, &record);
    store_commit(store, batch, commit_late, &retry);
    store_close(store);
    assert_int_equal(outcome.count, 1);
    assert_int_equal(outcome.status[0], -ESHUTDOWN);
}
