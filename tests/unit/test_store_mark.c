/* A store whose daemon was killed, and then damaged in every way: it is refused with the remedy, or nothing is lost.
 * carma admin recover makes it one that goes on, and no number is given twice. */

#include "store/mark.h"
#include "store_jobs.h"

#define JOBS 40

static char wal[96], mark[96], old_wal[96], old_database[96];

static void copy(const char *from, const char *to)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    assert_int_equal(file_read(from, 64 << 20, &text, &length, NULL), 0);
    assert_int_equal(file_write_atomic(to, text, length, 0600, NULL), 0);
}

static void commit_some(struct store *store, int first, int last)
{
    struct outcome outcome = {0};

    for (int job = first; job <= last; job++) {
        commit_job(store, (uint64_t)job, &outcome);
        wait_for(store, &outcome, job - first + 1); /* a transaction each */
    }
}

static off_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The jobs are acknowledged by a daemon that is killed; with `close_once`, ten of them by one before it that closed. */
static void make_store(bool close_once)
{
    snprintf(wal, sizeof wal, "%s-wal", database);
    snprintf(mark, sizeof mark, "%s/store.mark", directory);
    snprintf(old_wal, sizeof old_wal, "%s/old-wal", directory);
    snprintf(old_database, sizeof old_database, "%s/old", directory);
    if (close_once)
        fill(10);
    pid_t killed = fork();

    if (killed == 0) {
        struct store *store = open_store();
        commit_some(store, close_once ? 11 : 1, JOBS / 2);
        copy(wal, old_wal);
        copy(database, old_database);
        commit_some(store, JOBS / 2 + 1, JOBS);
        _exit(0);
    }
    assert_int_equal(waitpid(killed, NULL, 0), killed);
    /* the rest of a log is room, which may be damaged as well */
    struct store_mark noted;
    assert_int_equal(store_mark_read(directory, &noted, NULL), 0);
    assert_true(size_of(wal) > (off_t)1000 * (24 + 4096));
    assert_int_equal(truncate(wal, 32 + (off_t)noted.frames * (24 + 4096)), 0);
    assert_int_equal(truncate(old_wal, size_of(wal)), 0);
}

/* ---- The ways, each with a place in thousandths of the file ---- */

static void cut(const char *path, int place)
{
    assert_int_equal(truncate(path, size_of(path) * place / 1000), 0);
}

static void change_byte(const char *path, off_t at, unsigned char bit)
{
    CLEANUP(close_fd) int fd = open(path, O_RDWR);
    unsigned char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= bit;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void flip(const char *path, int place)
{
    change_byte(path, size_of(path) * place / 1000, 0x10);
}

static void flip_in_head(const char *path, int at)
{
    change_byte(path, at, 1);
}

static void zero_head(const char *path, int length)
{
    static const char zeros[4096];
    CLEANUP(close_fd) int fd = open(path, O_RDWR);

    assert_int_equal(pwrite(fd, zeros, (size_t)length, 0), length);
}

static void take_away(const char *path, int place)
{
    assert_int_equal(unlink(path), 0);
}

static void put_older_wal_back(const char *path, int place)
{
    copy(old_wal, path);
}

static void put_older_database_back(const char *path, int place)
{
    store_close(open_store());
    copy(old_database, path);
}

static void take_all_away(const char *path, int place)
{
    unlink(wal);
    unlink(path);
}

static const struct damage {
    const char *what;
    void (*make)(const char *path, int place);
    const char *path;
    int first, last, step;
} ways[] = {
    {"the log is gone", take_away, wal, 0, 0, 1},
    {"the log is cut", cut, wal, 0, 999, 37},
    {"a byte of the log is another", flip, wal, 1, 999, 31},
    {"a byte of its head is another", flip_in_head, wal, 0, 31, 1},
    {"its head is zero", zero_head, wal, 32, 4096, 4064},
    {"an older log is back", put_older_wal_back, wal, 0, 0, 1},
    {"an older database is back", put_older_database_back, database, 0, 0, 1},
    {"the database is gone", take_away, database, 0, 0, 1},
    {"the mark is gone, and the log", take_all_away, mark, 0, 0, 1},
    {"the mark is another", flip, mark, 0, 999, 99},
};

/* The damaged store does not open; recovered it does, with an unbroken beginning of what was there. */
static void try_damage(const struct damage *way, int place)
{
    struct store_recovery recovery;
    struct store *store = NULL;
    struct error err = {{0}};

    way->make(way->path, place);
    if (way->path == wal) /* whatever the database itself shows */
        assert_int_equal(store_check_mark(directory, NULL), -EBADMSG);
    int rc = store_open(directory, &store, &err);
    if (rc != -EBADMSG || !strstr(err.text, directory) || !strstr(err.text, "carma admin recover --state /") ||
        strchr(err.text, '\n'))
        fail_msg("%s (%d): %d: %s", way->what, place, rc, err.text);
    rc = store_recover(directory, &recovery, &err);
    if (rc)
        fail_msg("%s (%d): not recovered: %s", way->what, place, err.text);
    store = open_store();
    if (store_last_job(store) < JOBS || recovery.next_job != store_last_job(store) + 1)
        fail_msg("%s (%d): the last job is %" PRIu64, way->what, place, store_last_job(store));
    struct loaded loaded = load(store);
    if (loaded.records != recovery.records || loaded.specs > JOBS)
        fail_msg("%s (%d): %" PRIu64 " records, told %" PRIu64, way->what, place, loaded.records, recovery.records);
    store_close(store);
    if (*recovery.kept)
        assert_int_equal(unlink(recovery.kept), 0);
}

static void empty(void)
{
    unlink(old_wal);
    unlink(old_database);
    remove_directory(NULL);
    assert_int_equal(mkdir(directory, 0700), 0);
}

/* The store of two daemons, as it was left by the one that was killed. */
static struct {
    char *text;
    size_t length;
} left[2][5];

static const char *const parts[] = {database, wal, mark, old_wal, old_database};

static void keep_parts(bool close_once)
{
    make_store(close_once);
    for (size_t i = 0; i < array_size(parts); i++)
        assert_int_equal(file_read(parts[i], 64 << 20, &left[close_once][i].text, &left[close_once][i].length, NULL),
                         0);
    empty();
}

static void put_parts(bool close_once)
{
    for (size_t i = 0; i < array_size(parts); i++)
        assert_int_equal(file_replace(parts[i], left[close_once][i].text, left[close_once][i].length, 0600, NULL), 0);
}

STORE_TEST(test_every_damage_is_refused)
{
    keep_parts(false);
    keep_parts(true);
    for (size_t i = 0; i < array_size(ways); i++) {
        for (int n = 0, place = ways[i].first; place <= ways[i].last; n++, place += ways[i].step) {
            put_parts(n % 2);
            try_damage(&ways[i], place);
            empty();
        }
    }
    for (size_t i = 0; i < array_size(parts); i++) {
        free(left[0][i].text);
        free(left[1][i].text);
    }
}

/* What is behind the last commit is nobody's: a write that a power cut ended, or bytes of an older log. */
STORE_TEST(test_an_end_without_a_commit)
{
    make_store(false);
    int fd = open(wal, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "half a frame", 12), 12);
    close(fd);
    assert_int_equal(reopen_and_load().specs, JOBS);
    assert_int_equal(reopen_and_load().specs, JOBS); /* which was closed, without a log */
    assert_int_equal(size_of(wal), 0);
    empty();
}

/* The log is begun anew many times under one mark that did not reach the disk. */
STORE_TEST(test_a_mark_of_before_a_power_cut)
{
    make_store(false);
    copy(mark, old_wal);
    pid_t killed = fork();
    if (killed == 0) {
        struct store *store = open_store();
        sqlite3 *db;

        for (int job = JOBS + 1; job <= JOBS + 20; job++) {
            assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
            assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(RESTART)", NULL, NULL, NULL), SQLITE_OK);
            sqlite3_close(db);
            commit_some(store, job, job);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(killed, NULL, 0), killed);
    copy(old_wal, mark);
    assert_int_equal(reopen_and_load().specs, JOBS + 20);
    empty();
}

/* A commit that fails gives no number, and a mark must not say that it did. */
STORE_TEST(test_a_transaction_that_fails_is_not_marked)
{
    struct store *store;
    struct outcome outcome = {0};
    pid_t killed = fork();

    if (killed == 0) {
        store = open_store();
        commit_some(store, 1, 2);
        run_sql("CREATE TRIGGER no BEFORE INSERT ON record WHEN NEW.job = 9 BEGIN SELECT RAISE(ABORT, 'no'); END");
        commit_and_wait(store, 9, &outcome);
        run_sql("DROP TRIGGER no");
        commit_some(store, 3, 3);
        _exit(outcome.status[0] == 0);
    }
    int status;
    assert_int_equal(waitpid(killed, &status, 0), killed);
    assert_int_equal(status, 0);
    assert_int_equal(reopen_and_load().specs, 3);
}

static void set_form(int form)
{
    CLEANUP(free_ptr) char *sql = xasprintf("PRAGMA user_version = %d", form);
    sqlite3 *db;

    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* As by an older carma, or where an error of the disk ends a start: the next start finds all. */
STORE_TEST(test_a_start_that_fails_leaves_the_log)
{
    make_store(false);
    set_form(99);
    assert_refused(-ENOTSUP, "form 99");
    assert_true(size_of(wal) > 0);
    set_form(13);
    assert_int_equal(reopen_and_load().specs, JOBS);
    unlink(old_wal);
    unlink(old_database);
}
