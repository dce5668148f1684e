/* The store: acknowledged data is on the disk, in order and whole; a failure is reported and leaves nothing; a file
 * that is not a store, or not ours, is refused in one line. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "store/store.h"
#include "store/store_internal.h"
#include "store_fixture.h"

#define MANY 200

static void assert_refused(int code, const char *says)
{
    struct store *store = NULL;
    struct error err = {{0}};

    assert_int_equal(store_open(directory, &store, &err), code);
    assert_null(store);
    assert_null(strchr(err.text, '\n'));
    assert_non_null(strstr(err.text, directory));
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

/* The reports to `done`, in their order. */
struct outcome {
    int count;
    int status[MANY];
    int number[MANY];
    char text[512];
};
struct ticket {
    struct outcome *outcome;
    int number;
};

static void on_done(int status, const char *error_text, void *user)
{
    struct ticket *ticket = user;
    struct outcome *outcome = ticket->outcome;

    assert_true(outcome->count < MANY);
    assert_int_equal(status == 0, error_text == NULL);
    snprintf(outcome->text, sizeof outcome->text, "%s", error_text ? error_text : "");
    outcome->status[outcome->count] = status;
    outcome->number[outcome->count++] = ticket->number;
    free(ticket);
}

static struct record record_of(uint64_t job)
{
    return (struct record){.type = RECORD_HELD, .job = job, .at_ns = (int64_t)job * 10};
}

/* One batch of a spec and two records of the job. */
static void commit_job(struct store *store, uint64_t job, struct outcome *outcome)
{
    struct ticket *ticket = xmalloc(sizeof *ticket);
    struct store_batch *batch = store_batch_new();
    struct record held = record_of(job), released = record_of(job);
    char spec[64];

    released.type = RECORD_RELEASED;
    snprintf(spec, sizeof spec, "{\"name\":\"job %" PRIu64 "\"}", job);
    store_batch_spec(batch, job, spec);
    store_batch_record(batch, &held);
    store_batch_record(batch, &released);
    *ticket = (struct ticket){outcome, (int)job};
    store_commit(store, batch, on_done, ticket);
}

static void wait_for(struct store *store, struct outcome *outcome, int count)
{
    while (outcome->count < count) {
        struct pollfd ready = {.fd = store_event_fd(store), .events = POLLIN};

        assert_int_equal(poll(&ready, 1, 20000), 1);
        store_dispatch(store);
    }
}

/* The result of a load: jobs in the order of their specs, and whether the records are those of commit_job. */
struct loaded {
    int specs;
    uint64_t jobs[MANY];
    uint64_t records;
};

static int on_spec(uint64_t job, const char *json, void *user)
{
    struct loaded *loaded = user;
    char expected[64];

    assert_int_equal(loaded->records, 0);
    snprintf(expected, sizeof expected, "{\"name\":\"job %" PRIu64 "\"}", job);
    assert_string_equal(json, expected);
    loaded->jobs[loaded->specs++] = job;
    return 0;
}

static int on_record(uint64_t seq, const struct record *record, void *user)
{
    struct loaded *loaded = user;
    struct record expected = record_of(loaded->jobs[(seq - 1) / 2]);

    expected.type = seq % 2 ? RECORD_HELD : RECORD_RELEASED;
    assert_int_equal(seq, ++loaded->records);
    assert_int_equal(record->type, expected.type);
    assert_int_equal(record->job, expected.job);
    assert_int_equal(record->at_ns, expected.at_ns);
    return 0;
}

static struct loaded load(struct store *store)
{
    struct loaded loaded = {0};
    struct error err = {{0}};
    struct store_taker taker = {.on_record = on_record, .on_spec = on_spec, .user = &loaded, .most_ended = MANY};

    if (store_load(store, &taker, &err))
        fail_msg("%s", err.text);
    assert_int_equal(loaded.records, loaded.specs * 2);
    return loaded;
}

static struct loaded reopen_and_load(void)
{
    struct store *store = open_store();
    struct loaded loaded = load(store);

    store_close(store);
    return loaded;
}

static void test_round_trip_in_order(void **state)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    struct loaded loaded = load(store);

    assert_int_equal(loaded.specs, 0);
    for (uint64_t job = 1; job <= 100; job++)
        commit_job(store, job, &outcome);
    wait_for(store, &outcome, 100);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(outcome.status[i], 0);
        assert_int_equal(outcome.number[i], i + 1);
    }
    store_close(store);
    loaded = reopen_and_load();
    assert_int_equal(loaded.specs, 100);
    assert_int_equal(loaded.jobs[99], 100);
}

static void test_close_commits_what_is_queued(void **state)
{
    struct store *store = open_store();
    struct outcome outcome = {0};

    for (uint64_t job = 1; job <= 50; job++)
        commit_job(store, job, &outcome);
    store_close(store);
    assert_int_equal(outcome.count, 50);
    assert_int_equal(reopen_and_load().specs, 50);
}

/* A process that is killed the moment it hears "done" has lost nothing. */
static void test_done_is_durable(void **state)
{
    int said[2], status;
    char byte;
    pid_t child;

    assert_int_equal(pipe(said), 0);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct outcome outcome = {0};
        struct store *store = open_store();

        commit_job(store, 7, &outcome);
        wait_for(store, &outcome, 1);
        if (outcome.status[0] != 0 || write(said[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    assert_refused(-EBUSY, "another carmad uses this state (pid ");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    close(said[0]);
    assert_int_equal(reopen_and_load().jobs[0], 7);
}

static void tell(int status, const char *error_text, void *user)
{
    if (status || write(*(int *)user, "x", 1) != 1)
        _exit(1);
}

/* Killed at any moment: acknowledged data is there, and no batch is there in part (which load() sees). */
static void test_killed_while_committing(void **state)
{
    int told = 0, said[2];
    pid_t child;

    for (int round = 0; round < 5; round++) {
        struct store *store;
        struct loaded loaded;
        char byte;

        assert_int_equal(pipe(said), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
            uint64_t first;

            store = open_store();
            first = (uint64_t)load(store).specs + 1;
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
        loaded = load(store);
        store_close(store);
        assert_true(told >= 3 && loaded.specs >= told);
    }
}

/* While one transaction waits (for another holder of the database), all batches that come meanwhile become the next
 * one. */
static void test_group_commit(void **state)
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
    assert_int_equal(store_transactions(store), 2);
    store_close(store);
    assert_int_equal(reopen_and_load().specs, MANY);
}

/* That a power cut loses nothing cannot be tried here; that SQLite is told to see to it, can. */
static void test_synced(void **state)
{
    struct store *store = open_store();
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
    store_close(store);
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
    char *body = xmalloc(MIB + 1);

    memset(body, 'x', MIB);
    body[MIB] = '\0';
    store_batch_spec(batch, job, body);
    free(body);
    *ticket = (struct ticket){outcome, (int)job};
    store_commit(store, batch, on_done, ticket);
}

/* A full disk: the batch, those in its transaction and those queued behind it all fail and leave nothing; once that was
 * told, and there is room, commits succeed again. */
static void test_full_disk(void **state)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    struct loaded loaded;

    commit_job(store, 1, &outcome);
    wait_for(store, &outcome, 1);
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
    commit_job(store, 5, &outcome);
    wait_for(store, &outcome, 5);
    assert_int_equal(outcome.status[4], 0);
    commit_big(store, 6, &outcome);
    wait_for(store, &outcome, 6);
    assert_int_equal(outcome.status[5], -ENOSPC);
    limit_pages(store, "1000000");
    commit_job(store, 6, &outcome);
    wait_for(store, &outcome, 7);
    assert_int_equal(outcome.status[6], 0);
    store_close(store);
    loaded = reopen_and_load();
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
    commit_job(store, 1, &outcome);
    wait_for(store, &outcome, 1);
    setrlimit(RLIMIT_FSIZE, &limit);
    commit_big(store, 2, &outcome);
    wait_for(store, &outcome, 2);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    commit_job(store, 2, &outcome);
    wait_for(store, &outcome, 3);
    store_close(store);
    return outcome.status[0] == 0 && outcome.status[1] == -EIO && outcome.status[2] == 0 ? 42 : 1;
}

static void test_write_error(void **state)
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

/* A record that cannot be encoded fails alone with the batches queued behind it, and the commits of its `done` are
 * tried afresh. */
static void test_bad_batch(void **state)
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
    batch = store_batch_new();
    store_batch_record(batch, &good);
    store_batch_spec(batch, 1, "{}"); /* there is one already; the record before it must go too */
    store_commit(store, batch, retry_from_done, &retry);
    wait_for(store, &outcome, 4);
    assert_int_equal(retry.status, -EEXIST);
    store_close(store);
    assert_int_equal(reopen_and_load().specs, 3);
}

static void commit_late(int status, const char *error_text, void *user)
{
    struct retry *retry = user;

    commit_job(retry->store, retry->job, retry->outcome);
}

static void test_commit_while_closing(void **state)
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

static void test_load_comes_first(void **state)
{
    struct store *store = open_store();
    struct outcome outcome = {0};
    struct error err;

    commit_job(store, 1, &outcome);
    assert_int_equal(store_load(store, &(struct store_taker){0}, &err), -EBUSY);
    store_close(store);
}

static void test_second_opener(void **state)
{
    struct store *store = open_store();
    char pid[32];

    snprintf(pid, sizeof pid, "(pid %d)", (int)getpid());
    assert_refused(-EBUSY, pid);
    store_close(store);
    store_close(open_store());
}

/* A daemon is killed while a child of its has not come to exec yet: the child's copy of the lock goes with it. */
static void test_lock_of_an_orphan(void **state)
{
    struct store *store = NULL;
    int status;
    pid_t killed = fork();

    if (killed == 0) {
        if (store_open(directory, &store, NULL) || fork() == 0) {
            usleep(300 * 1000);
            _exit(1);
        }
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(killed, &status, 0), killed);
    assert_true(WIFSIGNALED(status));
    store = open_store();
    store_close(store);
}

static void assert_mode(const char *path, mode_t mode)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, mode);
}

static void test_modes(void **state)
{
    mode_t mask = umask(0);
    char *made = xasprintf("%s/a/b", directory), *path = xasprintf("%s/store.db", made);
    char *wal = xasprintf("%s-wal", path), *lock = xasprintf("%s/lock", made);
    char *parent = xasprintf("%s/a", directory);
    struct store *store = NULL;
    struct outcome outcome = {0};

    assert_int_equal(store_open(made, &store, NULL), 0);
    commit_job(store, 1, &outcome);
    wait_for(store, &outcome, 1);
    assert_mode(made, 0700);
    assert_mode(path, 0600);
    assert_mode(wal, 0600);
    assert_mode(lock, 0600);
    store_close(store);
    umask(mask);
    unlink(path);
    unlink(lock);
    assert_int_equal(rmdir(made), 0);
    assert_int_equal(rmdir(parent), 0);
    free(made);
    free(path);
    free(wal);
    free(lock);
    free(parent);
}

static void test_directory_of_others(void **state)
{
    assert_int_equal(chmod(directory, 0770), 0);
    assert_refused(-EPERM, "chmod 700");
    assert_int_equal(chmod(directory, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(directory, 65534, (gid_t)-1), 0);
        assert_refused(-EPERM, "belongs to uid 65534");
    }
}

/* In a child, so that root can become a user that modes bind. */
static void test_read_only_directory(void **state)
{
    int status;
    pid_t child;

    if (geteuid() == 0)
        assert_int_equal(chown(directory, 65534, (gid_t)-1), 0);
    assert_int_equal(chmod(directory, 0500), 0);
    child = fork();
    if (!child) {
        if (geteuid() == 0 && setuid(65534) < 0)
            _exit(1);
        assert_refused(-EACCES, "Permission denied");
        _exit(42);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    assert_int_equal(chmod(directory, 0700), 0);
}

static void test_not_a_database(void **state)
{
    char junk[8192];

    memset(junk, 'j', sizeof junk);
    assert_int_equal(file_write_atomic(database, junk, sizeof junk, 0600, NULL), 0);
    assert_refused(-EBADMSG, "restore it from a backup");
}

static void test_database_of_another_program(void **state)
{
    run_sql("CREATE TABLE t (x)");
    assert_refused(-EBADMSG, "another program");
}

static void test_database_from_the_future(void **state)
{
    store_close(open_store());
    run_sql("PRAGMA user_version = 7");
    assert_refused(-ENOTSUP, "form 7, this carma knows up to 6");
}

static void fill(int jobs)
{
    struct store *store = open_store();
    struct outcome outcome = {0};

    for (int job = 1; job <= jobs; job++)
        commit_job(store, (uint64_t)job, &outcome);
    store_close(store);
}

/* Stores that earlier versions left behind: of the first form submissions have no estimate, of the second there is no
 * energy, up to the third there are no snapshots, up to the fourth no accounting (test_store_history.c), up to the
 * fifth no requests. */
static void test_earlier_forms_are_brought_up_to_date(void **state)
{
    struct error err;

    fill(2);
    for (int form = 1; form <= 5; form++) {
        run_sql("DROP TABLE request; ALTER TABLE history DROP COLUMN last_claim_bytes;"
                " ALTER TABLE history DROP COLUMN last_claim_source");
        if (form <= 4)
            run_sql("DROP TABLE history; DROP TABLE total; DROP TABLE held");
        if (form <= 3)
            run_sql("DROP TABLE snapshot; DROP TABLE job");
        if (form <= 2)
            run_sql("DROP TABLE energy; DROP TABLE meter");
        run_sql(form == 1   ? "PRAGMA user_version = 1"
                : form == 2 ? "PRAGMA user_version = 2"
                : form == 3 ? "PRAGMA user_version = 3"
                : form == 4 ? "PRAGMA user_version = 4"
                            : "PRAGMA user_version = 5");
        assert_int_equal(store_read(directory, NULL, NULL, &err), -ENOTSUP);
        assert_int_equal(reopen_and_load().specs, 2);
        if (store_read(directory, NULL, NULL, &err))
            fail_msg("%s", err.text);
    }
}

static int see_request(const struct store_request *request, void *user)
{
    char *seen = user;

    sprintf(seen + strlen(seen), "%u %s %" PRIx64 " %" PRIu64 " %u;", request->uid, request->id, request->digest,
            request->first, request->count);
    return 0;
}

/* In the order of their jobs; one that comes anew takes the old one's place; those that are too old are not told of,
 * and forgotten. */
static void test_requests(void **state)
{
    struct store_request request = {
        .id = "a", .uid = 7, .digest = UINT64_MAX, .first = 5, .count = 2, .at_unix_s = time(NULL)};
    struct store *store = open_store();
    struct store_batch *batch = store_batch_new();
    char seen[200] = "";
    struct error err;

    store_batch_request(batch, &request);
    request.uid = 8;
    request.first = 4;
    store_batch_request(batch, &request);
    request.uid = 7;
    request.first = 9;
    request.count = 1;
    store_batch_request(batch, &request);
    request.id = "old";
    request.at_unix_s -= STORE_REQUEST_KEPT_S + 5;
    store_batch_request(batch, &request);
    store_commit(store, batch, NULL, NULL);
    assert_int_equal(store_load_requests(store, see_request, seen, &err), -EBUSY);
    store_close(store);
    store = open_store();
    assert_int_equal(store_load_requests(store, see_request, seen, &err), 0);
    assert_string_equal(seen, "8 a ffffffffffffffff 4 2;7 a ffffffffffffffff 9 1;");
    batch = store_batch_new();
    store_batch_forget(batch, 0);
    store_commit(store, batch, NULL, NULL);
    store_close(store);
    run_sql("CREATE TEMP TABLE t (n CHECK (n = 2)); INSERT INTO t SELECT count(*) FROM request");
}

static int take_any(uint64_t job, const char *json, void *user)
{
    return 0;
}

struct energy_seen {
    char text[400];
};

static int see_meter(const struct store_meter *meter, void *user)
{
    struct energy_seen *seen = user;

    snprintf(seen->text + strlen(seen->text), sizeof seen->text - strlen(seen->text), "%s %lld %lld %lld\n", meter->gpu,
             (long long)meter->at_ns, (long long)meter->counter_mj, (long long)meter->idle_mw);
    return 0;
}

static int see_account(const char *gpu, uint64_t party, int64_t mj, void *user)
{
    struct energy_seen *seen = user;

    snprintf(seen->text + strlen(seen->text), sizeof seen->text - strlen(seen->text), "%s %lld %lld\n", gpu,
             (long long)(int64_t)party, (long long)mj);
    return 0;
}

/* Sums are replaced, not added to: writing one again counts nothing twice. */
static void test_energy(void **state)
{
    struct energy_seen seen = {""};
    struct error err;

    for (int round = 1; round <= 2; round++) {
        struct store *store = open_store();
        for (int again = 0; again < 2; again++) {
            struct store_batch *batch = store_batch_new();
            store_batch_meter(batch, &(struct store_meter){"GPU-b", 1000 * round, 77, -1});
            store_batch_meter(batch, &(struct store_meter){"GPU-a", 1000 * round, -1, 54000});
            store_batch_energy(batch, "GPU-a", UINT64_MAX, 5);
            store_batch_energy(batch, "GPU-a", 7, INT64_C(1) << 40);
            store_batch_energy(batch, "GPU-a", 0, 100 * round);
            store_commit(store, batch, NULL, NULL);
        }
        store_close(store);
    }
    struct store *store = open_store();
    assert_int_equal(store_load_energy(store, see_meter, see_account, &seen, &err), 0);
    assert_string_equal(seen.text, "GPU-a 2000 -1 54000\nGPU-b 2000 77 -1\n"
                                   "GPU-a -1 5\nGPU-a 0 200\nGPU-a 7 1099511627776\n");
    store_close(store);
}

static void assert_load_fails(int code, const char *says)
{
    struct store *store = open_store();
    struct error err = {{0}};

    assert_int_equal(store_load(store, &(struct store_taker){.on_spec = take_any}, &err), code);
    assert_null(strchr(err.text, '\n'));
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    store_close(store);
}

static void test_damaged_rows(void **state)
{
    fill(3);
    run_sql("UPDATE record SET body = '{\"type\":\"held\"}' WHERE seq = 3");
    assert_load_fails(-EBADMSG, "record 3 is damaged: record held: \"at_ns\" is missing");
    run_sql("UPDATE record SET body = (SELECT body FROM record WHERE seq = 1) WHERE seq = 3");
    assert_load_fails(-EBADMSG, "record 3 is damaged: its columns and its body differ");
    run_sql("DELETE FROM record WHERE seq = 2");
    assert_load_fails(-EBADMSG, "record 2 is missing");
    run_sql("INSERT INTO spec VALUES (-4, '{}')");
    assert_load_fails(-EBADMSG, "spec of job -4 is damaged");
}

/* Every page but the first overwritten: whenever SQLite notices, the answer is one line and no crash. */
static void test_damaged_pages(void **state)
{
    char *bytes;
    size_t length;

    fill(100);
    assert_int_equal(file_read(database, 16 * MIB, &bytes, &length, NULL), 0);
    assert_true(length > 8192);
    memset(bytes + 4096, 0xa5, length - 4096);
    assert_int_equal(file_write_atomic(database, bytes, length, 0600, NULL), 0);
    free(bytes);
    assert_refused(-EBADMSG, "restore it from a backup");
}

static int refuse_third(uint64_t seq, const struct record *record, void *user)
{
    return seq == 3 ? -77 : 0;
}

static void test_load_stops_where_told(void **state)
{
    struct store *store;
    struct error err;

    fill(3);
    store = open_store();
    assert_int_equal(store_load(store, &(struct store_taker){.on_record = refuse_third}, &err), -77);
    assert_non_null(strstr(err.text, "record 3 (held)"));
    store_close(store);
}

/* The form on the disk is a promise: it changes only together with docs/formats/store.md and user_version. */
static void test_golden_schema(void **state)
{
    char text[16384] = "", *golden;
    sqlite3_stmt *row;
    size_t length;
    sqlite3 *db;

    fill(1);
    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT 'PRAGMA application_id = ' || application_id FROM pragma_application_id "
                           "UNION ALL SELECT 'PRAGMA user_version = ' || user_version FROM pragma_user_version "
                           "UNION ALL SELECT * FROM (SELECT sql FROM sqlite_schema ORDER BY name)",
                           -1, &row, NULL),
        SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW) {
        length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s;\n", sqlite3_column_text(row, 0));
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    assert_int_equal(file_read(GOLDEN_SCHEMA, MIB, &golden, &length, NULL), 0);
    assert_string_equal(text, golden);
    free(golden);
}

#define store_test(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_round_trip_in_order),
        store_test(test_close_commits_what_is_queued),
        store_test(test_done_is_durable),
        store_test(test_killed_while_committing),
        store_test(test_group_commit),
        store_test(test_synced),
        store_test(test_full_disk),
        store_test(test_write_error),
        store_test(test_bad_batch),
        store_test(test_commit_while_closing),
        store_test(test_requests),
        store_test(test_load_comes_first),
        store_test(test_second_opener),
        store_test(test_lock_of_an_orphan),
        store_test(test_modes),
        store_test(test_directory_of_others),
        store_test(test_read_only_directory),
        store_test(test_not_a_database),
        store_test(test_database_of_another_program),
        store_test(test_database_from_the_future),
        store_test(test_earlier_forms_are_brought_up_to_date),
        store_test(test_energy),
        store_test(test_damaged_rows),
        store_test(test_damaged_pages),
        store_test(test_load_stops_where_told),
        store_test(test_golden_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
