/* Questions to the accounting: by connections of their own, with an end to each. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "store/store_internal.h"

/* Steps of SQLite's machine between two looks at the clock: a fraction of a millisecond. */
#define STEPS_AT_ONCE 5000

struct question {
    const struct store_history_filter *filter;
    const char *path;
    sqlite3 *db;
    int64_t after_ns; /* when filter->after ended */
    int64_t uid;      /* of filter->user */
};

/* Its placeholder in the statement. */
enum parameter {
    PARAMETER_SINCE = 1,
    PARAMETER_UNTIL,
    PARAMETER_UID,
    PARAMETER_NAME,
    PARAMETER_STATE,
    PARAMETER_ACCOUNT,
    PARAMETER_TAG,
    PARAMETER_JOB,
    PARAMETER_AFTER_NS,
    PARAMETER_AFTER,
    PARAMETER_MOST
};

static int is_over(void *user)
{
    const struct store_deadline *deadline = user;
    struct timespec now;

    if (deadline->closing && atomic_load(deadline->closing))
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec > deadline->deadline_ns;
}

static int read_error(const struct question *question, struct error *err)
{
    if (sqlite3_errcode(question->db) == SQLITE_INTERRUPT)
        return error_set(err, ETIMEDOUT, "the history could not be read in time: ask for a shorter span");
    return store_sqlite_error(question->db, question->path, "be read", err);
}

/* One integer. 1: it is there; 0: no row is. */
static int look_up(const struct question *question, const char *sql, const char *text, int64_t number, int64_t *value,
                   struct error *err)
{
    sqlite3_stmt *row = NULL;
    int code, rc;

    if (sqlite3_prepare_v2(question->db, sql, -1, &row, NULL) != SQLITE_OK)
        return read_error(question, err);
    if (text)
        sqlite3_bind_text(row, 1, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(row, 1, number);
    code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        *value = sqlite3_column_int64(row, 0);
    rc = code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : read_error(question, err);
    sqlite3_finalize(row);
    return rc;
}

/* A user without a name is called by number. Of several of one name, the one with the highest. */
static int find_user(struct question *question, struct error *err)
{
    const char *user = question->filter->user;
    int rc = look_up(question, "SELECT uid FROM total WHERE user = ? ORDER BY uid DESC", user, 0, &question->uid, err);

    if (rc == 0 && *user && strlen(user) < 11 && strspn(user, "0123456789") == strlen(user)) {
        question->uid = 0;
        for (const char *digit = user; *digit; digit++)
            question->uid = question->uid * 10 + (*digit - '0');
        rc = 1;
    }
    return rc;
}

static void write_statement(const struct question *question, const struct history_want *want, struct strbuf *sql)
{
    const struct store_history_filter *filter = question->filter;

    strbuf_puts(sql, "SELECT ");
    store_history_put_columns(want, sql);
    strbuf_puts(sql, " FROM history WHERE true");
    if (filter->since_ns != INT64_MIN)
        strbuf_printf(sql, " AND ended_ns >= ?%d", PARAMETER_SINCE);
    if (filter->until_ns != INT64_MAX)
        strbuf_printf(sql, " AND ended_ns < ?%d", PARAMETER_UNTIL);
    if (filter->user)
        strbuf_printf(sql, " AND uid = ?%d", PARAMETER_UID);
    if (filter->name)
        strbuf_printf(sql, " AND name GLOB ?%d", PARAMETER_NAME);
    if (filter->state)
        strbuf_printf(sql, " AND state = ?%d", PARAMETER_STATE);
    if (filter->account)
        strbuf_printf(sql, " AND account = ?%d", PARAMETER_ACCOUNT);
    if (filter->tag)
        strbuf_printf(sql, " AND instr(',' || tags || ',', ',' || ?%d || ',') > 0", PARAMETER_TAG);
    if (filter->job)
        strbuf_printf(sql, " AND job = ?%d", PARAMETER_JOB);
    if (filter->after)
        strbuf_printf(sql, " AND (ended_ns, job) < (?%d, ?%d)", PARAMETER_AFTER_NS, PARAMETER_AFTER);
    if (filter->latest_first)
        strbuf_puts(sql, " ORDER BY ended_ns DESC, job DESC");
    strbuf_printf(sql, " LIMIT ?%d", PARAMETER_MOST);
}

static void bind(const struct question *question, sqlite3_stmt *row)
{
    const struct store_history_filter *filter = question->filter;

    sqlite3_bind_int64(row, PARAMETER_SINCE, filter->since_ns);
    sqlite3_bind_int64(row, PARAMETER_UNTIL, filter->until_ns);
    sqlite3_bind_int64(row, PARAMETER_UID, question->uid);
    if (filter->name)
        sqlite3_bind_text(row, PARAMETER_NAME, filter->name, -1, SQLITE_STATIC);
    if (filter->state)
        sqlite3_bind_text(row, PARAMETER_STATE, filter->state, -1, SQLITE_STATIC);
    if (filter->account)
        sqlite3_bind_text(row, PARAMETER_ACCOUNT, filter->account, -1, SQLITE_STATIC);
    if (filter->tag)
        sqlite3_bind_text(row, PARAMETER_TAG, filter->tag, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, PARAMETER_JOB, (sqlite3_int64)filter->job);
    sqlite3_bind_int64(row, PARAMETER_AFTER_NS, question->after_ns);
    sqlite3_bind_int64(row, PARAMETER_AFTER, (sqlite3_int64)filter->after);
    sqlite3_bind_int64(row, PARAMETER_MOST, filter->most);
}

static int hand_out(const struct question *question,
                    int (*take)(const struct store_history *row, void *user, struct error *err), void *user,
                    struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    struct store_history history = {
        .reservation_source = "", .last_reservation_source = "", .user = "", .name = "", .workload = "", .model = ""};
    struct history_want want;
    sqlite3_stmt *row = NULL;
    int code = SQLITE_DONE, rc = 0;

    store_history_want(&want, question->filter->sums, question->filter->text);
    write_statement(question, &want, &sql);
    if (sqlite3_prepare_v2(question->db, sql.text, -1, &row, NULL) != SQLITE_OK)
        return read_error(question, err);
    bind(question, row);
    while (!rc && (code = sqlite3_step(row)) == SQLITE_ROW) {
        rc = store_history_from_row(&want, row, &history)
                 ? take(&history, user, err)
                 : error_set(err, EBADMSG, "%s: the history of job %" PRIu64 " is damaged: restore it from a backup",
                             question->path, history.job);
    }
    if (!rc && code != SQLITE_DONE)
        rc = read_error(question, err);
    sqlite3_finalize(row);
    return rc;
}

static int ask(struct question *question, int (*take)(const struct store_history *row, void *user, struct error *err),
               void *user, struct error *err)
{
    const struct store_history_filter *filter = question->filter;
    int found = 1;

    if (filter->user)
        found = find_user(question, err);
    if (found > 0 && filter->after)
        found = look_up(question, "SELECT ended_ns FROM history WHERE job = ?", NULL, (int64_t)filter->after,
                        &question->after_ns, err);
    return found > 0 ? hand_out(question, take, user, err) : found;
}

int store_read_history(const char *directory, const struct store_history_filter *filter,
                       const struct store_deadline *deadline,
                       int (*take)(const struct store_history *row, void *user, struct error *err), void *user,
                       struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    struct store_deadline copy = *deadline;
    struct question question = {.filter = filter, .path = path};
    int rc = store_database_open_to_read(path, &question.db, err);

    if (rc)
        return rc;
    sqlite3_progress_handler(question.db, STEPS_AT_ONCE, is_over, &copy);
    rc = ask(&question, take, user, err);
    sqlite3_close(question.db);
    return rc;
}

/* ---- Verification ---- */

/* The sums, one by one, that are less than those of their user's rows. SQLite fails where a sum does not fit an
 * integer, and two years of many jobs that wait come close. So millions and the remainder are summed up apart, as a
 * number of two digits. A sum that is the largest number has stopped there. */
#define LESS_THAN(column, of_rows)                                                                                     \
    "SELECT total.uid FROM total WHERE " column " < 9223372036854775807 AND (" column " / 1000000, " column            \
    " % 1000000) < (SELECT ifnull(sum(" of_rows " / 1000000) + sum(" of_rows " % 1000000) / 1000000, 0),"              \
    " ifnull(sum(" of_rows " % 1000000) % 1000000, 0) FROM history WHERE history.uid = total.uid)"

int store_check_history(const char *directory, uint64_t *rows, struct error *err)
{
    /* clang-format off */
    static const char wrong[] =
        LESS_THAN("(completed + failed + gpu_oom + cancelled + lost + refused + timeout"
                  " + returned + expired)", "1")
        " UNION ALL " LESS_THAN("gpu_ns", "max(gpu_ns, 0)")
        " UNION ALL " LESS_THAN("memory_mib_ms", "max(memory_mib_ms, 0)")
        " UNION ALL " LESS_THAN("energy_mj", "max(energy_mj, 0)")
        " UNION ALL " LESS_THAN("wait_ns", "max(wait_ns, 0)")
        " UNION ALL SELECT uid FROM history WHERE uid NOT IN (SELECT uid FROM total) LIMIT 1";
    /* clang-format on */
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    struct question question = {.path = path};
    int64_t uid, count = 0;
    int rc = store_database_open_to_read(path, &question.db, err);

    if (rc)
        return rc;
    rc = look_up(&question, "SELECT count(*) FROM history", NULL, 0, &count, err);
    if (rc > 0)
        rc = look_up(&question, wrong, NULL, 0, &uid, err);
    if (rc > 0)
        rc = error_set(err, EBADMSG,
                       "%s: the sums of user %" PRId64 " are less than those of his jobs' rows: restore it "
                       "from a backup",
                       path, uid);
    sqlite3_close(question.db);
    *rows = (uint64_t)count;
    return rc;
}
