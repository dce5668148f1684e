/* Questions about ended jobs: rows, one job, statistics, a job's script.
 *
 * history_get(), history_get_stats() and history_get_script() read a request's query into a struct question, and ask()
 * lets it wait. start_next() gives users their turns; work() reads the store on a thread of the pool and makes the
 * answer's JSON there, because a thousand rows would hold up the loop. on_worked() answers on the loop, where
 * merge_totals() adds what only the daemon knows: jobs that have not ended, and forgotten ones. A new kind of question
 * is a row of enum question_kind, a branch of work() and one of answer(). */
#include "daemon/request/history_query.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api/or_null.h"
#include "api/spec_limits.h"
#include "base/json/json_read.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/old_names.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "daemon/account/groups.h"
#include "daemon/account/totals.h"
#include "daemon/log.h"
#include "daemon/node/node.h"

#define TEXT_LIMIT   200 /* of a user's or a job's name that is asked for */
#define ROWS_UNASKED 100 /* of an answer without a number in its request */

enum question_kind { QUESTION_ROWS, QUESTION_JOB, QUESTION_STATS, QUESTION_SCRIPT };

struct question {
    struct history_queries *queries;
    struct http_request *request;
    enum question_kind kind;
    struct store_history_filter filter; /* its texts are owned: a server that is freed does not wait for the thread */
    enum groups_key key;
    uint64_t turn;
    struct question *next;
    uv_work_t work;
    /* The thread's result. */
    json_t *json; /* of a row, or of the account */
    char *text;   /* of rows */
    int status;
    struct error err;
};

struct history_queries {
    struct daemon *daemon;
    struct question *waiting; /* in the order of arrival */
    struct question *running;
    uint64_t turn; /* of the last one that was begun */
    unsigned running_count;
    atomic_bool closing;
};

struct history_queries *history_new(struct daemon *daemon)
{
    struct history_queries *queries = xcalloc(1, sizeof *queries);

    queries->daemon = daemon;
    return queries;
}

/* ---- On a thread of the pool ---- */

static json_t *number_or_null(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static const char *letter_of(const char *name)
{
    for (uint32_t state = JOB_COMPLETED; state <= JOB_LAST_ENDED; state++)
        if (strcmp(job_state_name(state), name) == 0)
            return job_state_letter(state);
    return NULL;
}

static json_t *row_to_json(const struct store_history *row)
{
    json_t *json = json_object();

#define HIDDEN(name, value)
#define PLAIN(name, value)                           json_object_set_new(json, name, json_integer((json_int_t)(value)));
#define FROM_0(name, value)                          json_object_set_new(json, name, number_or_null(value));
#define OVER_0(name, value)                          json_object_set_new(json, name, number_or_null((value) > 0 ? (value) : -1));
#define MOMENT(name, value)                          moment_set(json, name, nodetime_shown_ns(value), (value) >= 0);
#define WORD(name, value)                            json_object_set_new(json, name, text_or_null(value));
#define COLUMN(type, member, kind, sums, form, name) form(name, row->member)
#include "store/history.def"
    json_object_set_new(json, "letter", text_or_null(letter_of(row->state)));
    return json;
}

struct rows {
    json_t *list;
    uint32_t most; /* one more is asked for, to know whether there is more */
    bool more;
};

static int take_row(const struct store_history *row, void *user, struct error *err)
{
    struct rows *rows = user;

    if (json_array_size(rows->list) >= rows->most)
        rows->more = true;
    else
        json_array_append_new(rows->list, row_to_json(row));
    return 0;
}

static int count_row(const struct store_history *row, void *user, struct error *err)
{
    return groups_add(user, row, err);
}

static void find_rows(struct question *question, const char *directory, const struct store_deadline *deadline)
{
    struct rows rows = {.list = json_array(), .most = question->filter.most};

    question->filter.most++;
    question->status = store_read_history(directory, &question->filter, deadline, take_row, &rows, &question->err);
    if (question->kind == QUESTION_JOB) {
        question->json = json_incref(json_array_get(rows.list, 0));
        json_decref(rows.list);
        return;
    }
    json_t *json = json_pack("{s:I, s:b, s:o}", "now_ns", (json_int_t)nodetime_shown_now_ns(), "more", rows.more,
                             "jobs", rows.list);
    question->text = printable_json(
        json_dumps(moment_twin(json, "now_ns"), JSON_COMPACT)); /* here: a thousand rows take the loop's time */
    json_decref(json);
}

static void find_script(struct question *question, const char *directory)
{
    CLEANUP(free_ptr) char *text = NULL;
    json_t *spec = NULL, *script;

    question->status = store_read_spec(directory, question->filter.job, &text, &question->err);
    if (question->status == -ENOENT)
        question->status = 0;
    if (text)
        json_read(text, strlen(text), 0, &(struct json_bounds)SPEC_JSON_BOUNDS, &spec, NULL);
    script = json_object_get(spec, "script");
    if (json_is_string(script))
        question->json = json_pack("{s:I, s:O}", "id", (json_int_t)question->filter.job, "script", script);
    json_decref(spec);
}

static void work(uv_work_t *work)
{
    struct question *question = work->data;
    const char *directory = question->queries->daemon->config.state_directory;
    struct store_deadline deadline = {.closing = &question->queries->closing};
    struct groups *groups;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    deadline.deadline_ns = (now.tv_sec + HISTORY_WALL_S) * NS_PER_SEC + now.tv_nsec;
    if (question->kind == QUESTION_SCRIPT) {
        find_script(question, directory);
        return;
    }
    if (question->kind != QUESTION_STATS) {
        find_rows(question, directory, &deadline);
        return;
    }
    question->filter.sums = true;
    question->filter.text = groups_key_text(question->key);
    groups = groups_new(question->key, nodetime_scale() != 1);
    question->status = store_read_history(directory, &question->filter, &deadline, count_row, groups, &question->err);
    if (question->status == 0)
        question->json = groups_to_json(groups);
    groups_free(groups);
}

/* ---- Users, with their jobs that have not ended ---- */

/* Only the daemon knows them; and only it knows the forgotten jobs. */
static bool is_of_totals(const struct question *question)
{
    return question->kind == QUESTION_STATS && question->key == GROUPS_BY_USER &&
           question->filter.since_ns == INT64_MIN && question->filter.until_ns == INT64_MAX && !question->filter.name &&
           !question->filter.state && !question->filter.account && !question->filter.tag;
}

struct merge {
    const char *user; /* NULL: all */
    json_t *ended;    /* groups of rows */
    json_t *users;
    int64_t jobs;
    struct history_sums sums;
};

static json_t *group_of_rows(const json_t *groups, uint32_t uid)
{
    json_t *group;
    size_t i;

    json_array_foreach (groups, i, group)
        if (json_integer_value(json_object_get(group, "uid")) == uid)
            return group;
    return NULL;
}

static void add_total(const struct total *total, void *user_data)
{
    static const char *const of_rows[] = {"compared", "wait_mean_ns", "wait_p95_ns", "reserved_to_peak_permille",
                                          "under_permille"};
    struct merge *merge = user_data;
    char number[16];
    json_t *json, *rows;
    int64_t *sums = (int64_t *)&merge->sums;
    const int64_t *more = (const int64_t *)&total->sums;

    snprintf(number, sizeof number, "%" PRIu32, total->uid);
    if (merge->user && strcmp(merge->user, total->user) != 0 && strcmp(merge->user, number) != 0)
        return;
    json = json_pack("{s:o, s:I}", "user", text_or_null(total->user), "uid", (json_int_t)total->uid);
    groups_numbers(json, total->submitted, &total->sums);
    rows = group_of_rows(merge->ended, total->uid);
    for (size_t i = 0; i < array_size(of_rows); i++) {
        json_t *value = json_object_get(rows, of_rows[i]);
        json_object_set_new(json, of_rows[i], value ? json_incref(value) : i == 0 ? json_integer(0) : json_null());
    }
    json_array_append_new(merge->users, json);
    history_add(&merge->jobs, total->submitted);
    for (size_t i = 0; i < sizeof merge->sums / sizeof *sums; i++)
        history_add(&sums[i], more[i]);
}

static void merge_totals(const struct question *question, int64_t now_ns)
{
    const struct daemon *daemon = question->queries->daemon;
    struct node_energy nobody = node_energy_of_nobody(daemon->node);
    struct merge merge = {
        .user = question->filter.user, .ended = json_object_get(question->json, "users"), .users = json_array()};

    totals_read(daemon, now_ns, add_total, &merge);
    groups_numbers(json_object_get(question->json, "total"), merge.jobs, &merge.sums);
    json_object_set_new(question->json, "users", merge.users);
    json_object_set_new(question->json, "left_out", json_integer(0));
    if (!merge.user) {
        json_object_set_new(question->json, "modelled_idle_mj", json_integer(nobody.idle_mj));
        json_object_set_new(question->json, "modelled_unmanaged_mj", json_integer(nobody.unmanaged_mj));
    }
}

/* ---- Questions come and are answered ---- */

static void fail(const struct question *question)
{
    bool too_much = question->status == -ETIMEDOUT || question->status == -E2BIG;

    if (!too_much)
        daemon_log("the history cannot be read: %s", question->err.text);
    http_reply_error(question->request, too_much ? 422 : 503, "%s", question->err.text);
}

static void answer(struct question *question)
{
    int64_t now_ns = nodetime_now_ns();

    if (question->status < 0) {
        fail(question);
    } else if (question->kind == QUESTION_ROWS) {
        http_reply_text(question->request, "application/json", question->text);
        question->text = NULL;
    } else if (!question->json && question->kind == QUESTION_SCRIPT) {
        http_reply_error(question->request, 404,
                         "job %" PRIu64 " runs a command and no script: carma show %" PRIu64 " has it",
                         question->filter.job, question->filter.job);
    } else if (!question->json) {
        http_reply_error(question->request, 404, "there is no job '%" PRIu64 "' in the history", question->filter.job);
    } else {
        if (question->kind == QUESTION_STATS)
            moment_set(question->json, "now_ns", nodetime_shown_ns(now_ns), true);
        if (is_of_totals(question))
            merge_totals(question, now_ns);
        http_reply(question->request, 200, question->json);
        question->json = NULL;
    }
}

static void question_free(struct question *question)
{
    json_decref(question->json);
    free(question->text);
    free((char *)question->filter.user);
    free((char *)question->filter.name);
    free((char *)question->filter.state);
    free((char *)question->filter.account);
    free((char *)question->filter.tag);
    free(question);
}

static void refuse(struct question *question)
{
    http_reply_stopping(question->request);
    question_free(question);
}

static void start_next(struct history_queries *queries);

static void on_worked(uv_work_t *work, int status)
{
    struct question *question = work->data, **link;
    struct history_queries *queries = question->queries;

    (void)status; /* nothing is cancelled */
    for (link = &queries->running; *link != question; link = &(*link)->next)
        ;
    *link = question->next;
    queries->running_count--;
    if (!atomic_load(&queries->closing)) {
        answer(question);
        question_free(question);
        start_next(queries);
        return;
    }
    refuse(question);
    if (!queries->running)
        free(queries);
}

static unsigned count_of(const struct question *list, const uid_t *uid)
{
    unsigned count = 0;

    for (; list; list = list->next)
        count += !uid || list->request->uid == *uid;
    return count;
}

static unsigned under_way(const struct history_queries *queries, uid_t uid)
{
    return count_of(queries->waiting, &uid) + count_of(queries->running, &uid);
}

/* Of the users in turn: a user's questions have turns one after another, and a new one begins with the present turn.
 * Within a turn the user with the fewest goes first. */
static uint64_t next_turn(const struct history_queries *queries, uid_t uid)
{
    const struct question *const lists[] = {queries->waiting, queries->running};
    uint64_t last = queries->turn;

    for (size_t i = 0; i < array_size(lists); i++)
        for (const struct question *question = lists[i]; question; question = question->next)
            if (question->request->uid == uid && question->turn > last)
                last = question->turn;
    return last + 1;
}

static bool is_before(const struct question *a, const struct question *b)
{
    return a->turn != b->turn ? a->turn < b->turn
                              : under_way(a->queries, a->request->uid) < under_way(b->queries, b->request->uid);
}

static struct question *take_next(struct history_queries *queries)
{
    struct question **first = &queries->waiting, *question;

    for (struct question **at = first; *at; at = &(*at)->next)
        if (is_before(*at, *first))
            first = at;
    question = *first;
    *first = question->next;
    queries->turn = question->turn;
    return question;
}

static void start_next(struct history_queries *queries)
{
    while (queries->waiting && queries->running_count < HISTORY_AT_ONCE) {
        struct question *question = take_next(queries);

        question->next = queries->running;
        queries->running = question;
        queries->running_count++;
        question->work.data = question;
        uv_queue_work(queries->daemon->loop, &question->work, work, on_worked);
    }
}

void history_close(struct history_queries *queries)
{
    if (!queries)
        return;
    atomic_store(&queries->closing, true);
    while (queries->waiting) {
        struct question *question = queries->waiting;
        queries->waiting = question->next;
        refuse(question);
    }
    if (!queries->running)
        free(queries);
}

static char *copy_of(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static void ask(struct daemon *daemon, struct http_request *request, struct question asked)
{
    struct history_queries *queries = daemon->history;
    struct question *question, **link = &queries->waiting;

    if (count_of(queries->waiting, NULL) + queries->running_count >= HISTORY_IN_ALL ||
        under_way(queries, request->uid) >= HISTORY_PER_UID) {
        http_reply(request, 503,
                   json_pack("{s:s, s:b}", "error", "too many questions about the history at once", "busy", 1));
        return;
    }
    question = xmalloc(sizeof *question);
    *question = asked;
    question->queries = queries;
    question->turn = next_turn(queries, request->uid);
    question->request = request;
    question->filter.user = copy_of(asked.filter.user);
    question->filter.name = copy_of(asked.filter.name);
    question->filter.state = copy_of(asked.filter.state);
    question->filter.account = copy_of(asked.filter.account);
    question->filter.tag = copy_of(asked.filter.tag);
    while (*link)
        link = &(*link)->next;
    *link = question;
    start_next(queries);
}

/* ---- The query ---- */

static bool read_time(struct http_request *request, const char *name, int64_t *ns)
{
    const char *text = http_query(request, name);

    if (text && parse_integer(text, 0, INT64_MAX, ns, NULL) != 0) {
        http_reply_error(request, 400, "%s '%.40s' is not a time: say nanoseconds since 1970", name, text);
        return false;
    }
    if (text)
        *ns = nodetime_of_shown_ns(*ns);
    return true;
}

static bool read_text(struct http_request *request, const char *name, const char **text)
{
    *text = http_query(request, name);
    if (!*text || strlen(*text) <= TEXT_LIMIT)
        return true;
    http_reply_error(request, 400, "%s is longer than %d bytes", name, TEXT_LIMIT);
    return false;
}

static bool is_ended_state(const char *name)
{
    for (uint32_t state = JOB_COMPLETED; state <= JOB_LAST_ENDED; state++)
        if (strcmp(job_state_name(state), name) == 0)
            return true;
    return false;
}

/* False: it has been answered. */
static bool read_filter(struct http_request *request, struct store_history_filter *filter)
{
    *filter = (struct store_history_filter){.since_ns = INT64_MIN, .until_ns = INT64_MAX, .most = UINT32_MAX};
    if (!read_time(request, "since", &filter->since_ns) || !read_time(request, "until", &filter->until_ns) ||
        !read_text(request, "user", &filter->user) || !read_text(request, "name", &filter->name) ||
        !read_text(request, "state", &filter->state) || !read_text(request, "account", &filter->account) ||
        !read_text(request, "tag", &filter->tag))
        return false;
    if (!filter->state || is_ended_state(filter->state))
        return true;
    http_reply_error(request, 400,
                     "state '%.40s' is not one in which jobs end: say COMPLETED, FAILED, GPU_OOM, CANCELLED, "
                     "LOST, REFUSED or TIMEOUT",
                     filter->state);
    return false;
}

static bool read_number(struct http_request *request, const char *name, int64_t highest, int64_t otherwise,
                        int64_t *number)
{
    const char *text = http_query(request, name);

    *number = otherwise;
    if (!text || parse_integer(text, 1, highest, number, NULL) == 0)
        return true;
    http_reply_error(request, 400, "%s '%.40s' is not a number from 1 to %" PRId64, name, text, highest);
    return false;
}

static void get_rows(struct daemon *daemon, struct http_request *request)
{
    struct question question = {.kind = QUESTION_ROWS};
    int64_t most, after;

    if (!read_filter(request, &question.filter) ||
        !read_number(request, "limit", HISTORY_MOST_ROWS, ROWS_UNASKED, &most) ||
        !read_number(request, "after", INT64_MAX, 0, &after))
        return;
    question.filter.most = (uint32_t)most;
    question.filter.after = (uint64_t)after;
    question.filter.latest_first = true;
    ask(daemon, request, question);
}

void history_get(struct daemon *daemon, struct http_request *request, const char *rest)
{
    struct question question = {.kind = QUESTION_JOB,
                                .filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX, .most = 1}};
    int64_t job;

    if (*rest == '\0') {
        get_rows(daemon, request);
    } else if (*rest != '/' || parse_integer(rest + 1, 1, INT64_MAX, &job, NULL) != 0) {
        http_reply_error(request, 404, "there is no '%.60s'", request->path);
    } else {
        question.filter.job = (uint64_t)job;
        ask(daemon, request, question);
    }
}

void history_get_script(struct daemon *daemon, struct http_request *request, uint64_t job)
{
    ask(daemon, request, (struct question){.kind = QUESTION_SCRIPT, .filter = {.job = job}});
}

void history_get_stats(struct daemon *daemon, struct http_request *request)
{
    struct question question = {.kind = QUESTION_STATS};
    const char *by = http_query(request, "by");

    question.key = by ? groups_key_find(by) : GROUPS_BY_USER;
    if (question.key == GROUPS_KEY_COUNT)
        http_reply_error(request, 400, "by '%.40s' is not known: say user, account, name, day, month, state or source",
                         by);
    else if (question.key == GROUPS_BY_MONTH && nodetime_scale() != 1)
        http_reply_error(request, 400, "a virtual node's time has no months: say by=day");
    else if (read_filter(request, &question.filter))
        ask(daemon, request, question);
}
