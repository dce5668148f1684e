#include "daemon/request/share_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/or_null.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/use.h"
#include "core/user.h"
#include "daemon/account/totals.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/request/actions.h"
#include "daemon/request/admin_only.h"
#include "daemon/shares.h"

#define NS_OF_USE 1000000 /* in a thousandth of a GPU second */

/* ---- The table ---- */

struct row {
    const struct user *user;
    const char *name; /* borrowed */
    int64_t use;
};

struct rows {
    const struct daemon *daemon;
    int64_t now_ns;
    struct row *items; /* owned */
    size_t count, capacity;
    int64_t use;     /* of all */
    uint64_t shares; /* of those who have jobs */
};

static void take(const struct total *total, void *data)
{
    struct rows *rows = data;
    const struct user *user = user_find(rows->daemon->core, total->uid);
    int64_t use = user ? use_until(user, rows->now_ns) : 0;

    if (!user || (!use && !user->unfinished && user->share == 1))
        return;
    array_reserve(rows->items, rows->capacity, rows->count + 1);
    rows->items[rows->count++] = (struct row){user, total->user, use};
    rows->use += use;
    rows->shares += user->unfinished ? user->share : 0;
}

/* Who has had the least for his share first. */
static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    int by_use = use_compare(a->use, a->user->share, b->use, b->user->share);

    return by_use ? by_use : strcmp(a->name, b->name);
}

static json_t *row_to_json(const struct rows *rows, const struct row *row)
{
    const struct user *user = row->user;
    uint64_t due = rows->shares ? user->share * UINT64_C(1000) / rows->shares : 0;

    return json_pack("{s:s, s:I, s:I, s:b, s:I, s:o, s:o, s:I, s:I, s:I}", "user", row->name, "uid",
                     (json_int_t)user->uid, "share", (json_int_t)user->share, "configured",
                     shares_set(rows->daemon, user->uid, row->name) > 0, "use_gpu_ns",
                     (json_int_t)(row->use * NS_OF_USE), "use_permille",
                     integer_or_null(rows->use ? (int64_t)((double)row->use * 1000 / (double)rows->use) : 0, rows->use),
                     "due_permille", integer_or_null((int64_t)due, user->unfinished), "running",
                     (json_int_t)user->running, "waiting", (json_int_t)(user->unfinished - user->running),
                     "held_gpu_permille", (json_int_t)user->held_permille);
}

void share_table_get(struct daemon *daemon, struct http_request *request)
{
    struct rows rows = {.daemon = daemon, .now_ns = nodetime_now_ns()};
    bool fair = core_configuration(daemon->core)->order == ORDER_FAIR;
    json_t *users = json_array();

    totals_read(daemon, rows.now_ns, take, &rows);
    if (rows.count)
        qsort(rows.items, rows.count, sizeof *rows.items, compare_rows);
    for (size_t i = 0; i < rows.count; i++)
        json_array_append_new(users, row_to_json(&rows, &rows.items[i]));
    free(rows.items);
    http_reply(request, 200,
               json_pack("{s:I, s:s, s:I, s:o}", "now_ns", (json_int_t)nodetime_shown_ns(rows.now_ns), "order",
                         fair ? "fair" : "fifo", "half_life_ns", (json_int_t)(USE_HALF_LIFE_S * NS_PER_SEC), "users",
                         users));
}

/* ---- Giving ---- */

struct search {
    const char *name;
    bool found;
    uint32_t uid;
    char *user; /* owned */
};

static void compare_user(const struct total *total, void *data)
{
    struct search *search = data;
    CLEANUP(free_ptr) char *number = xasprintf("%" PRIu32, total->uid);

    if (search->found || (strcmp(total->user, search->name) != 0 && strcmp(number, search->name) != 0))
        return;
    search->found = true;
    search->uid = total->uid;
    search->user = xstrdup(total->user);
}

/* Of those who have had a job, or any by his number. */
static bool find_user(const struct daemon *daemon, struct search *search)
{
    int64_t uid;

    totals_read(daemon, nodetime_now_ns(), compare_user, search);
    if (!search->found && parse_integer(search->name, 0, UINT32_MAX - 1, &uid, NULL) == 0) {
        search->found = true;
        search->uid = (uint32_t)uid;
        search->user = xstrdup(search->name);
    }
    return search->found;
}

static void give_to(struct daemon *daemon, struct http_request *request, const struct search *search, int64_t share)
{
    struct record input = {.type = RECORD_SHARE_GIVEN, .at_ns = nodetime_now_ns()};
    uint32_t set = shares_set(daemon, search->uid, search->user);
    struct error err;

    input.share_given = (struct record_share_given){.uid = search->uid, .share = (uint32_t)share};
    if (set) {
        http_reply_error(request, 409, "the setting 'shares' gives %.60s a share of %" PRIu32 ": change it there",
                         search->user, set);
    } else if (engine_input(daemon->engine, &input, &err) != 0) {
        http_reply_error(request, 409, "%s", err.text);
    } else {
        daemon_log("%s has a share of %" PRId64 ": by uid %u", search->user, share, (unsigned)request->uid);
        actions_reply_once_stored(daemon, request, 200,
                                  json_pack("{s:s, s:I, s:I}", "user", search->user, "uid", (json_int_t)search->uid,
                                            "share", (json_int_t)share),
                                  "it takes effect once that works, unless carmad ends before");
        engine_turn(daemon->engine);
    }
}

static void give(struct daemon *daemon, struct http_request *request)
{
    static const struct json_bounds bounds = {.values = 5, .depth = 1, .bytes = 256};
    struct search search = {0};
    const json_t *share;
    json_t *body;

    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    search.name = json_string_value(json_object_get(body, "user"));
    share = json_object_get(body, "share");
    if (!search.name || !json_is_integer(share) || json_object_size(body) != 2)
        http_reply_error(request, 400, "{\"user\": NAME or NUMBER, \"share\": NUMBER} is expected");
    else if (json_integer_value(share) < 1 || json_integer_value(share) > USER_MOST_SHARE)
        http_reply_error(request, 400, "a share of %" JSON_INTEGER_FORMAT " is not one from 1 to %d",
                         json_integer_value(share), USER_MOST_SHARE);
    else if (!find_user(daemon, &search))
        http_reply_error(request, 404, "no user '%.60s' has had a job here: name one that has, or say a uid",
                         search.name);
    else
        give_to(daemon, request, &search, json_integer_value(share));
    free(search.user);
    json_decref(body);
}

void share_table_give(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, give, "to give shares");
}
