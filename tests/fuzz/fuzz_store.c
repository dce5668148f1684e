/* A damaged store: the bytes of an SQLite file, or else lines that name its rows:
 *   s JOB TEXT    a submission
 *   j JOB TEXT    a job's state
 *   n TEXT        a snapshot of the TEXT and the lines "+ TEXT" that follow
 *   m N N N       a meter
 *   e PARTY MJ    energy
 *   h JOB N TEXT  a row of the history: all its numbers are N, all its texts TEXT
 *   t UID N       a user's sums
 *   d JOB AT N    memory held
 *   other lines   a record
 *
 * The daemon loads it or refuses it in one line; it can show a loaded state, go on from it, and store it. */
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "api/record_json.h"
#include "base/strbuf.h"
#include "daemon/account/groups.h"
#include "daemon/account/totals.h"
#include "daemon/engine/engine.h"
#include "daemon/run/ending.h"
#include "fuzz_daemon.h"
#include "store/store.h"

/* ---- The store ---- */

static void insert(sqlite3 *db, const char *sql, int64_t a, int64_t b, int64_t c, const char *text)
{
    sqlite3_stmt *row;

    require(sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK);
    sqlite3_bind_int64(row, 1, a);
    sqlite3_bind_int64(row, 2, b);
    sqlite3_bind_int64(row, 3, c);
    sqlite3_bind_text(row, 4, text, -1, SQLITE_TRANSIENT);
    sqlite3_step(row); /* one that is there already stays */
    sqlite3_finalize(row);
}

/* Its columns as they belong to it, or as nothing could have written them. */
static void insert_record(sqlite3 *db, int64_t seq, const char *text)
{
    struct record record = {0};

    if (record_json_read(text, strlen(text), &record, NULL) != 0)
        record = (struct record){0};
    CLEANUP(free_ptr)
    char *sql = xasprintf("INSERT OR IGNORE INTO record VALUES (?1, ?2, '%s', ?3, ?4)", record_type_name(record.type));
    insert(db, sql, seq, record.at_ns, (int64_t)record.job, text);
}

/* The values of all columns behind the job's and the user's. */
#define INTEGER                                      ", ?2"
#define UNSIGNED                                     ", ?2"
#define TEXT                                         ", ?4"
#define OPTIONAL                                     ", ?4"
#define COLUMN(type, member, kind, sums, form, name) kind
static const char history_values[] =
#include "store/history.def"
    ;

static void write_rows(const char *path, const char *text)
{
    CLEANUP(free_ptr)
    char *history_sql = xasprintf("INSERT OR IGNORE INTO history VALUES (?1, abs(?2 %% 4) + 0 * ?3%s)",
                                  history_values + sizeof INTEGER UNSIGNED - 1);
    CLEANUP(strbuf_release) struct strbuf snapshot = {0};
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    int64_t seq = 0, snapshot_seq = 0;
    sqlite3 *db = NULL;

    require(sqlite3_open(path, &db) == SQLITE_OK);
    require(sqlite3_exec(db, "PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL) == SQLITE_OK);
    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
        long long a = 0, b = 0, c = 0;
        int used = 0;

        if (snapshot.length && strncmp(line, "+ ", 2) != 0) {
            insert(db, "INSERT OR IGNORE INTO snapshot VALUES (?1, ?2, ?3, ?4)", snapshot_seq, 1, 1, snapshot.text);
            strbuf_release(&snapshot);
        }
        if (sscanf(line, "s %lld %n", &a, &used) == 1 && used)
            insert(db, "INSERT OR IGNORE INTO spec VALUES (?1 + 0 * ?2 * ?3, ?4)", a, 0, 0, line + used);
        else if (sscanf(line, "j %lld %n", &a, &used) == 1 && used)
            insert(db, "INSERT OR IGNORE INTO job VALUES (?1, ?2 + 0 * ?3, ?4, 0, 0)", a, a % 2 ? -1 : a, 0,
                   line + used);
        else if (sscanf(line, "m %lld %lld %lld", &a, &b, &c) == 3)
            insert(db, "INSERT OR IGNORE INTO meter VALUES (?4, ?1, ?2, ?3)", a, b, c, "GPU-1");
        else if (sscanf(line, "e %lld %lld", &a, &b) == 2)
            insert(db, "INSERT OR IGNORE INTO energy VALUES (?4, ?1, ?2 + 0 * ?3)", a, b, 0, "GPU-1");
        else if (sscanf(line, "h %lld %lld %n", &a, &b, &used) == 2 && used)
            insert(db, history_sql, a, b, 0, line + used);
        else if (sscanf(line, "t %lld %lld", &a, &b) == 2)
            insert(db,
                   "INSERT OR REPLACE INTO total (uid, completed, lost, gpu_ns, energy_mj, wait_ns, wait_1s, user)"
                   " VALUES (?1, ?2, ?2, ?2, ?2, ?2, ?2 + 0 * ?3, ?4)",
                   a, b, 0, "ana");
        else if (sscanf(line, "d %lld %lld %lld", &a, &b, &c) == 3)
            insert(db, "INSERT OR REPLACE INTO held VALUES (?1, ?2, ?3, ?3, ?3, ?3 + 0 * length(?4))", a, b, c, "");
        else if (strncmp(line, "n ", 2) == 0 || strncmp(line, "+ ", 2) == 0)
            strbuf_printf(&snapshot, "%s\n", line + 2), snapshot_seq = seq;
        else if (*line)
            insert_record(db, ++seq, line);
    }
    if (snapshot.length)
        insert(db, "INSERT OR IGNORE INTO snapshot VALUES (?1, ?2, ?3, ?4)", snapshot_seq, 1, 1, snapshot.text);
    require(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static void make_store(const char *directory, const uint8_t *bytes, size_t length)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    struct store *empty;

    if (length >= 16 && memcmp(bytes, "SQLite format 3", 16) == 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        require(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
        close(fd);
        return;
    }
    require(store_open(directory, &empty, NULL) == 0);
    store_close(empty);
    CLEANUP(free_ptr) char *text = xmalloc(length + 1);
    memcpy(text, bytes, length);
    text[length] = '\0';
    write_rows(path, text);
}

/* ---- Its use ---- */

static int see_text(uint64_t job, const char *json, void *user, struct error *err)
{
    return 0;
}

static int see_record(uint64_t seq, const struct record *record, void *user, struct error *err)
{
    return 0;
}

static int see_snapshot(uint64_t seq, const struct record_list *snapshot, void *user, struct error *err)
{
    return 0;
}

static void see_total(const struct total *total, void *user_data)
{
    require(total->sums.gpu_ns >= 0 && total_ended(total) <= total->submitted);
}

static void show(struct daemon *daemon)
{
    for (const struct job_view *view = daemon->views.jobs; view; view = view->hh.next) {
        if (view->state == JOB_STATE_COUNT)
            continue;
        json_t *json = job_view_to_json(view, daemon->core, INT64_MAX / 2, ACCESS_ALL, true);
        require(json_is_object(json));
        free(job_view_memory_text(view, daemon->core, ACCESS_ALL));
        json_decref(json);
        json_decref(job_view_estimate_to_json(view));
    }
    totals_read(daemon, INT64_MAX / 2, see_total, daemon);
}

static int sum_up(const struct store_history *row, void *user, struct error *err)
{
    return groups_add(user, row, err);
}

/* The history can be told, or its faults. */
static void ask(const char *directory)
{
    const struct store_history_filter all = {
        .since_ns = INT64_MIN, .until_ns = INT64_MAX, .most = 1000, .latest_first = true};
    const struct store_deadline patience = {.deadline_ns = INT64_MAX};
    uint64_t rows;

    for (enum groups_key key = 0; key < GROUPS_KEY_COUNT; key++) {
        struct groups *groups = groups_new(key, false);
        struct error err = {{0}};
        if (store_read_history(directory, &all, &patience, sum_up, groups, &err) != 0)
            require_message(&err);
        json_t *json = groups_to_json(groups);
        require(json_is_object(json));
        json_decref(json);
        groups_free(groups);
    }
    struct error err = {{0}};
    if (store_check_history(directory, &rows, &err) != 0)
        require_message(&err);
}

static void on_stored(int status, const char *error, void *user)
{
    require(status == 0);
    *(bool *)user = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const struct store_inspector inspector = {see_text, see_text, see_record, see_snapshot, NULL};
    const char *directory = fuzz_daemon_directory();
    bool is_file = length >= 16 && memcmp(bytes, "SQLite format 3", 16) == 0;
    struct error err = {{0}};
    struct daemon daemon;

    make_store(directory, bytes, length);
    if (store_inspect(directory, &inspector, &err) != 0)
        require_message(&err);
    ask(directory);
    err = (struct error){{0}};
    if (fuzz_daemon_start(&daemon, &err) != 0) {
        require_message(&err);
    } else {
        show(&daemon);
        if (!is_file) { /* SQLite finds damage when it gets there */
            /* A turn in which nothing is started: its decisions are stored while the daemon stops. */
            bool told = false;
            daemon.stopping = true;
            engine_on_stored(daemon.engine, on_stored, &told);
            engine_turn(daemon.engine);
            while (!told)
                uv_run(daemon.loop, UV_RUN_ONCE);
        }
    }
    fuzz_daemon_stop(&daemon);
    return 0;
}
