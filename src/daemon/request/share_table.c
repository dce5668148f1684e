#include "daemon/request/share_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/or_null.h"
#include "base/json/json_read.h"
#include "base/json/moment.h"
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
#include "daemon/request/user_named.h"
#include "daemon/shares.h"

#define NS_OF_USE 1000000 /* in a thousandth of a GPU second */

/* ---- The table ---- */

/* What a user has, or a group's users together. */
struct sums {
    int64_t use, held_permille;
    uint32_t running, waiting;
};

struct group_row {
    const struct user_group *group;
    struct sums sums;
    uint64_t shares; /* of its users who have jobs */
};

struct row {
    const struct user *user;
    const char *name; /* borrowed */
    struct sums sums;
    int64_t first_use; /* of his group, or his: compared first */
};

struct rows {
    const struct daemon *daemon;
    int64_t now_ns;
    struct row *items; /* owned */
    size_t count, capacity;
    struct group_row *groups; /* owned: those of the users */
    size_t group_count, group_capacity;
    int64_t use;     /* of all */
    uint64_t shares; /* of the groups, and of users without one, who have jobs */
};

static struct group_row *group_row_of(struct rows *rows, const struct user_group *group)
{
    for (size_t i = 0; i < rows->group_count; i++)
        if (rows->groups[i].group == group)
            return &rows->groups[i];
    if (!group)
        return NULL;
    array_reserve(rows->groups, rows->group_capacity, rows->group_count + 1);
    rows->groups[rows->group_count] = (struct group_row){.group = group};
    return &rows->groups[rows->group_count++];
}

static void take(const struct total *total, void *data)
{
    struct rows *rows = data;
    const struct user *user = user_find(rows->daemon->core, total->uid);
    struct group_row *group;
    struct sums sums;

    if (!user)
        return;
    sums = (struct sums){.use = use_until(user, rows->now_ns),
                         .held_permille = user->held_permille,
                         .running = user->running,
                         .waiting = user->unfinished - user->running};
    if (!sums.use && !user->unfinished && user->share == 1 && !user->group)
        return;
    array_reserve(rows->items, rows->capacity, rows->count + 1);
    rows->items[rows->count++] = (struct row){user, total->user, sums, sums.use};
    rows->use += sums.use;
    group = group_row_of(rows, user->group);
    if (!group) {
        rows->shares += user->unfinished ? user->share : 0;
        return;
    }
    if (user->unfinished && group->shares == 0)
        rows->shares += user->group->share;
    group->shares += user->unfinished ? user->share : 0;
    group->sums.use += sums.use;
    group->sums.held_permille += sums.held_permille;
    group->sums.running += sums.running;
    group->sums.waiting += sums.waiting;
}

/* Who has had the least for his share first: groups and users without one; then the users of a group. */
static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    const struct user_group *of_a = a->user->group, *of_b = b->user->group;
    int by_first = use_compare(a->first_use, user_first_share(a->user), b->first_use, user_first_share(b->user)),
        by_group = of_a == of_b ? 0 : strcmp(of_a ? of_a->name : a->name, of_b ? of_b->name : b->name),
        by_use = use_compare(a->sums.use, a->user->share, b->sums.use, b->user->share);

    return by_first ? by_first : by_group ? by_group : by_use ? by_use : strcmp(a->name, b->name);
}

/* The members that a user's row and a group's have. */
static void put_sums(json_t *json, const struct rows *rows, const struct sums *sums, double due_permille)
{
    bool has_jobs = sums->running || sums->waiting;
    json_t *more = json_pack(
        "{s:I, s:o, s:o, s:I, s:I, s:I}", "use_gpu_ns", (json_int_t)(sums->use * NS_OF_USE), "use_permille",
        integer_or_null(rows->use ? (int64_t)((double)sums->use * 1000 / (double)rows->use) : 0, rows->use),
        "due_permille", integer_or_null((int64_t)due_permille, has_jobs), "running", (json_int_t)sums->running,
        "waiting", (json_int_t)sums->waiting, "held_gpu_permille", (json_int_t)sums->held_permille);

    json_object_update(json, more);
    json_decref(more);
}

static json_t *group_to_json(const struct rows *rows, const struct group_row *row)
{
    json_t *json = json_pack("{s:s, s:I}", "group", row->group->name, "share", (json_int_t)row->group->share);

    put_sums(json, rows, &row->sums, rows->shares ? row->group->share * 1000.0 / (double)rows->shares : 0);
    return json;
}

static json_t *row_to_json(struct rows *rows, const struct row *row)
{
    const struct user *user = row->user;
    const struct group_row *group = group_row_of(rows, user->group);
    double due = rows->shares ? user_first_share(user) * 1000.0 / (double)rows->shares : 0;
    json_t *json = json_pack("{s:s, s:I, s:I, s:s?, s:b}", "user", row->name, "uid", (json_int_t)user->uid, "share",
                             (json_int_t)user->share, "group", user->group ? user->group->name : NULL, "configured",
                             shares_set(rows->daemon, user->uid, row->name) > 0);

    put_sums(json, rows, &row->sums, group && group->shares ? due * user->share / (double)group->shares : due);
    return json;
}

void share_table_get(struct daemon *daemon, struct http_request *request)
{
    struct rows rows = {.daemon = daemon, .now_ns = nodetime_now_ns()};
    bool fair = core_configuration(daemon->core)->order == ORDER_FAIR;
    json_t *users = json_array(), *groups = json_array();

    totals_read(daemon, rows.now_ns, take, &rows);
    for (size_t i = 0; i < rows.count; i++)
        if (rows.items[i].user->group)
            rows.items[i].first_use = group_row_of(&rows, rows.items[i].user->group)->sums.use;
    if (rows.count)
        qsort(rows.items, rows.count, sizeof *rows.items, compare_rows);
    for (size_t i = 0; i < rows.count; i++)
        json_array_append_new(users, row_to_json(&rows, &rows.items[i]));
    for (size_t i = 0; i < rows.group_count; i++)
        json_array_append_new(groups, group_to_json(&rows, &rows.groups[i]));
    free(rows.items);
    free(rows.groups);
    http_reply(request, 200,
               moment_twin(json_pack("{s:I, s:s, s:I, s:o, s:o}", "now_ns", (json_int_t)nodetime_shown_ns(rows.now_ns),
                                     "order", fair ? "fair" : "fifo", "half_life_ns",
                                     (json_int_t)(USE_HALF_LIFE_S * NS_PER_SEC), "users", users, "groups", groups),
                           "now_ns"));
}

/* ---- Giving ---- */

static void give_to(struct daemon *daemon, struct http_request *request, const struct user_named *named, int64_t share)
{
    struct record input = shares_given(daemon, named->uid, named->user, (uint32_t)share);
    uint32_t set = shares_set(daemon, named->uid, named->user);
    struct error err;

    if (set) {
        http_reply_error(request, 409, "the setting 'shares' gives %.60s a share of %" PRIu32 ": change it there",
                         named->user, set);
    } else if (engine_input(daemon->engine, &input, &err) != 0) {
        http_reply_error(request, 409, "%s", err.text);
    } else {
        daemon_log("%s has a share of %" PRId64 ": by uid %u", named->user, share, (unsigned)request->uid);
        actions_reply_once_stored(daemon, request, 200,
                                  json_pack("{s:s, s:I, s:I}", "user", named->user, "uid", (json_int_t)named->uid,
                                            "share", (json_int_t)share),
                                  "it takes effect once that works, unless carmad ends before");
        engine_turn(daemon->engine);
    }
}

static void give(struct daemon *daemon, struct http_request *request)
{
    static const struct json_bounds bounds = {.values = 5, .depth = 1, .bytes = 256};
    struct user_named named = {0};
    const json_t *share;
    json_t *body;

    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    named.name = json_string_value(json_object_get(body, "user"));
    share = json_object_get(body, "share");
    if (!named.name || !json_is_integer(share) || json_object_size(body) != 2)
        http_reply_error(request, 400, "{\"user\": NAME or NUMBER, \"share\": NUMBER} is expected");
    else if (json_integer_value(share) < 1 || json_integer_value(share) > USER_MOST_SHARE)
        http_reply_error(request, 400, "a share of %" JSON_INTEGER_FORMAT " is not one from 1 to %d",
                         json_integer_value(share), USER_MOST_SHARE);
    else if (!user_find_named(daemon, &named))
        http_reply_error(request, 404, USER_UNNAMED "%s", named.name,
                         *named.name == '@' ? "; a group has its share by the setting 'shares'" : "");
    else
        give_to(daemon, request, &named, json_integer_value(share));
    free(named.user);
    json_decref(body);
}

void share_table_give(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, give, "to give shares");
}
