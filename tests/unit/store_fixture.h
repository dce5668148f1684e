/* For tests of the store: a state directory of the test's own, and its files. */
#ifndef CARMA_TESTS_STORE_FIXTURE_H
#define CARMA_TESTS_STORE_FIXTURE_H

#include "unit.h"

#include <sqlite3.h>

#include "store/store.h"

static char directory[64];
static char database[80];

static int make_directory(void **state)
{
    snprintf(directory, sizeof directory, "/tmp/carma-store-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(database, sizeof database, "%s/store.db", directory);
    return 0;
}

/* Fails where the store has left anything else behind. */
static int remove_directory(void **state)
{
    static const char *const names[] = {"store.db", "store.db-wal", "store.db-shm", "store.mark", "lock"};

    for (size_t i = 0; i < array_size(names); i++) {
        char path[128];

        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}

static inline struct store *open_store(void)
{
    struct store *store = NULL;
    struct error err = {{0}};

    fail_if(store_open(directory, &store, &err), err);
    return store;
}

static inline void close_store(struct store **store) /* for CLEANUP */
{
    store_close(*store);
}

static inline void run_sql(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* A query's result: values separated by '|', rows by '\n'; NULL is "-". */
static inline void assert_rows(const char *sql, const char *expected)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    sqlite3_stmt *row;
    sqlite3 *db;

    strbuf_puts(&out, "");
    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(row) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const char *text = (const char *)sqlite3_column_text(row, i);
            strbuf_printf(&out, "%s%s", text ? text : "-", i + 1 < sqlite3_column_count(row) ? "|" : "\n");
        }
    sqlite3_finalize(row);
    sqlite3_close(db);
    assert_string_equal(out.text, expected);
}

/* STORE_TEST(name) { ... }: a test with a directory. */
#define STORE_TEST(name) TEST_BETWEEN(name, make_directory, remove_directory)

#endif
