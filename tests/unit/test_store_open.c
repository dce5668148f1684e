/* A store is opened by one daemon, in its modes and form. What is none, not ours, or damaged is refused in a line. */

#include "store_jobs.h"

STORE_TEST(test_second_opener)
{
    struct store *store = open_store();
    char why[64];

    snprintf(why, sizeof why, "another carmad uses this state (pid %d)", (int)getpid());
    assert_refused(-EBUSY, why);
    store_close(store);
    store_close(open_store());
}

/* A daemon is killed while a child of its has not come to exec yet: the child's copy of the lock goes with it. */
STORE_TEST(test_lock_of_an_orphan)
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

STORE_TEST(test_modes)
{
    mode_t mask = umask(0);
    CLEANUP(free_ptr) char *parent = xasprintf("%s/a", directory), *made = xasprintf("%s/b", parent);
    static const char *const names[] = {"store.db-wal", "store.db", "lock", "store.mark"};
    struct store *store = NULL;
    struct outcome outcome = {0};

    assert_int_equal(store_open(made, &store, NULL), 0);
    commit_and_wait(store, 1, &outcome);
    assert_mode(made, 0700);
    for (size_t i = 0; i < array_size(names); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", made, names[i]);
        assert_mode(path, 0600);
    }
    store_close(store);
    umask(mask);
    file_remove_tree(parent);
}

STORE_TEST(test_directory_of_others)
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
STORE_TEST(test_read_only_directory)
{
    int status;

    if (geteuid() == 0)
        assert_int_equal(chown(directory, 65534, (gid_t)-1), 0);
    assert_int_equal(chmod(directory, 0500), 0);
    pid_t child = fork();
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

STORE_TEST(test_databases_of_others)
{
    char junk[8192];

    run_sql("CREATE TABLE t (x)");
    assert_refused(-EBADMSG, "another program");
    memset(junk, 'j', sizeof junk);
    assert_int_equal(file_write_atomic(database, junk, sizeof junk, 0600, NULL), 0);
    assert_refused(-EBADMSG, "restore it from a backup");
}

STORE_TEST(test_database_from_the_future)
{
    store_close(open_store());
    run_sql("PRAGMA user_version = 900");
    assert_refused(-ENOTSUP, "form 900, this carma knows up to ");
}

/* Stores of earlier versions. The first has no estimate, the second no energy; to the third there are no snapshots,
 * to the fourth no accounting (test_store_history.c), to the fifth no requests, to the sixth no errors of SM
 * activity nor sums of leases, to the eighth no parts of snapshots, to the ninth no moves, to the tenth no projects;
 * to the eleventh other words; the seventh and the twelfth have the same tables. */
STORE_TEST(test_earlier_forms_are_brought_up_to_date)
{
    fill(2);
    for (int form = 1; form <= 12; form++) {
        if (form <= 11)
            run_sql(
                "ALTER TABLE history RENAME COLUMN attempts TO launches; ALTER TABLE history RENAME COLUMN retries TO"
                " recoveries; ALTER TABLE history RENAME COLUMN reserved_bytes TO claim_bytes; ALTER TABLE history"
                " RENAME COLUMN reservation_source TO claim_source; ALTER TABLE history RENAME COLUMN "
                "last_reserved_bytes TO"
                " last_claim_bytes; ALTER TABLE history RENAME COLUMN last_reservation_source TO last_claim_source;"
                " ALTER TABLE total RENAME COLUMN retries TO recoveries");
        if (form <= 10)
            run_sql("ALTER TABLE history DROP COLUMN account; ALTER TABLE history DROP COLUMN tags");
        if (form <= 9)
            run_sql("ALTER TABLE history DROP COLUMN moves");
        if (form <= 8)
            run_sql("DROP TABLE part");
        if (form <= 8 && form > 3)
            run_sql("ALTER TABLE job DROP COLUMN seq; ALTER TABLE job DROP COLUMN uid");
        if (form <= 6)
            run_sql("ALTER TABLE history DROP COLUMN model; ALTER TABLE history DROP COLUMN estimated_permille;"
                    " ALTER TABLE history DROP COLUMN activity_permille; DROP TRIGGER history_counted_leases;"
                    " ALTER TABLE total DROP COLUMN returned; ALTER TABLE total DROP COLUMN expired");
        if (form <= 5)
            run_sql("DROP TABLE request; ALTER TABLE history DROP COLUMN last_claim_bytes;"
                    " ALTER TABLE history DROP COLUMN last_claim_source");
        if (form <= 4)
            run_sql("DROP TABLE history; DROP TABLE total; DROP TABLE held");
        if (form <= 3)
            run_sql("DROP TABLE snapshot; DROP TABLE job");
        if (form <= 2)
            run_sql("DROP TABLE energy; DROP TABLE meter");
        CLEANUP(free_ptr) char *version = xasprintf("PRAGMA user_version = %d", form);
        run_sql(version);
        assert_int_equal(store_read(directory, NULL, NULL, &trouble), -ENOTSUP);
        assert_int_equal(reopen_and_load().specs, 2);
        fail_if(store_read(directory, NULL, NULL, &trouble), trouble);
    }
}

static int take_any(uint64_t job, const char *json, void *user)
{
    return 0;
}

static void assert_load_fails(int code, const char *says)
{
    CLEANUP(close_store) struct store *store = open_store();
    struct error err = {{0}};

    assert_int_equal(store_load(store, &(struct store_taker){.on_spec = take_any}, &err), code);
    assert_null(strchr(err.text, '\n'));
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static int refuse_third(uint64_t seq, const struct record *record, void *user)
{
    return seq == 3 ? -77 : 0;
}

STORE_TEST(test_rows_that_are_refused)
{
    fill(3);
    struct store *store = open_store();
    assert_int_equal(store_load(store, &(struct store_taker){.on_record = refuse_third}, &trouble), -77);
    assert_non_null(strstr(trouble.text, "record 3 (held)"));
    store_close(store);
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
STORE_TEST(test_damaged_pages)
{
    CLEANUP(free_ptr) char *bytes = NULL;
    size_t length;

    fill(100);
    assert_int_equal(file_read(database, 16 * MIB, &bytes, &length, NULL), 0);
    assert_true(length > 8192);
    memset(bytes + 4096, 0xa5, length - 4096);
    assert_int_equal(file_write_atomic(database, bytes, length, 0600, NULL), 0);
    assert_refused(-EBADMSG, "restore it from a backup");
}

/* The form on the disk is a promise: it changes only together with docs/formats/store.md and user_version. */
STORE_TEST(test_golden_schema)
{
    char text[16384] = "";
    sqlite3_stmt *row;
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
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s;\n", sqlite3_column_text(row, 0));
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    expect_file(GOLDEN_SCHEMA, text);
}
