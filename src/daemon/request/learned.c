#include "daemon/request/learned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "core/guess/prior.h"
#include "core/learn/learn.h"
#include "core/user.h"
#include "daemon/account/past_runs.h"
#include "daemon/account/totals.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/request/actions.h"
#include "daemon/request/admin_only.h"
#include "daemon/view/common_texts.h"

#define REFUSAL "what was learned of users"

/* ---- What is known ---- */

struct listing {
    const struct daemon *daemon;
    json_t *names; /* of the latest known job of each workload */
    json_t *users, *workloads;
};

static json_t *figures_to_json(int64_t likely_bytes, int64_t careful_bytes)
{
    return json_pack("{s:I, s:I}", "likely_bytes", (json_int_t)likely_bytes, "careful_bytes",
                     (json_int_t)careful_bytes);
}

/* False: nothing is known of it. */
static bool list_workload(struct listing *listing, uint32_t uid, const char *name, const struct profile *profile)
{
    json_t *job_name = json_object_get(listing->names, profile->workload);
    int32_t permille = core_observed_activity(listing->daemon->core, uid, profile->workload);

    if (!profile->runs && !profile->peak_bytes && !profile->estimated_bytes && !profile->measures && !permille)
        return false;
    json_array_append_new(listing->workloads,
                          json_pack("{s:s, s:I, s:s, s:O?, s:I, s:b, s:I, s:I, s:o, s:I, s:I}", "workload",
                                    profile->workload, "uid", (json_int_t)uid, "user", name, "name", job_name, "runs",
                                    (json_int_t)profile->runs, "told", profile->tells, "first_bytes",
                                    (json_int_t)profile->first_bytes, "peak_bytes", (json_int_t)profile->peak_bytes,
                                    "sm_activity_permille", permille > 0 ? json_integer(permille) : json_null(),
                                    "measures", (json_int_t)profile->measures, "pairs", (json_int_t)profile->met));
    return true;
}

static void list_user(struct listing *listing, uint32_t uid, const char *name)
{
    const struct user *user = user_find(listing->daemon->core, uid);
    uint32_t runs = 0, workloads = 0, models = past_runs_models(listing->daemon->past_runs, uid);
    const struct prior *own = user ? prior_of(listing->daemon->core, user) : NULL;

    for (const struct profile *profile = user ? user->profiles : NULL; profile; profile = profile->hh.next)
        if (list_workload(listing, uid, name, profile)) {
            runs += profile->runs;
            workloads++;
        }
    if (!user || (!workloads && !models && !user->own))
        return;
    json_array_append_new(listing->users,
                          json_pack("{s:I, s:s, s:I, s:I, s:I, s:b, s:o, s:o}", "uid", (json_int_t)uid, "user", name,
                                    "workloads", (json_int_t)workloads, "runs", (json_int_t)runs, "models",
                                    (json_int_t)models, "told", user->told != NULL, "own_guess",
                                    figures_to_json(own->likely_bytes, own->careful_bytes), "guess",
                                    figures_to_json(user->likely_bytes, user->careful_bytes)));
}

static void take_user(const struct total *total, void *user)
{
    list_user(user, total->uid, total->user);
}

static void get(struct daemon *daemon, struct http_request *request)
{
    struct listing listing = {daemon, json_object(), json_array(), json_array()};
    int64_t now_ns = nodetime_now_ns();

    for (const struct job_view *view = daemon->views.jobs; view; view = view->hh.next)
        if (view->workload)
            json_object_set_new(listing.names, job_view_workload(view), json_string(common_text_first(view->name)));
    totals_read(daemon, now_ns, take_user, &listing);
    list_user(&listing, USER_UNKNOWN, "unknown");
    json_decref(listing.names);
    http_reply(request, 200,
               moment_twin(json_pack("{s:I, s:o, s:o}", "now_ns", (json_int_t)nodetime_shown_ns(now_ns), "users",
                                     listing.users, "workloads", listing.workloads),
                           "now_ns"));
}

/* ---- Taking back ---- */

struct search {
    const char *name;
    bool found;
    uint32_t uid;
};

static void compare_user(const struct total *total, void *user)
{
    struct search *search = user;
    CLEANUP(free_ptr) char *number = xasprintf("%" PRIu32, total->uid);

    if (strcmp(total->user, search->name) == 0 || strcmp(number, search->name) == 0) {
        search->found = true;
        search->uid = total->uid;
    }
}

static bool is_workload(const struct daemon *daemon, const char *name)
{
    for (const struct user *user = core_users(daemon->core); user; user = user->hh.next)
        if (learn_find(daemon->core, user->uid, name))
            return true;
    return false;
}

/* False: it is neither. */
static bool name_to_record(const struct daemon *daemon, const char *name, struct record_forgotten *forgotten)
{
    struct search search = {.name = name, .found = strcmp(name, "unknown") == 0, .uid = USER_UNKNOWN};

    totals_read(daemon, nodetime_now_ns(), compare_user, &search);
    *forgotten = (struct record_forgotten){.of_user = search.found, .uid = search.found ? search.uid : 0};
    if (!search.found)
        snprintf(forgotten->workload, sizeof forgotten->workload, "%s", name);
    return search.found || is_workload(daemon, name);
}

static void forget(struct daemon *daemon, struct http_request *request)
{
    struct record input = {.type = RECORD_FORGOTTEN, .at_ns = nodetime_now_ns()};
    static const struct json_bounds bounds = {.values = 3, .depth = 1, .bytes = 4096};
    json_t *body;
    const char *name;
    struct error err;

    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    name = json_string_value(json_object_get(body, "forget"));
    if (!name || json_object_size(body) != 1)
        http_reply_error(request, 400, "{\"forget\": USER or WORKLOAD} is expected");
    else if (strlen(name) >= RECORD_WORKLOAD_SIZE || !name_to_record(daemon, name, &input.forgotten))
        http_reply_error(request, 404, "there is no user or workload '%.60s': carma admin learned lists them", name);
    else if (engine_input(daemon->engine, &input, &err) != 0)
        http_reply_error(request, 409, "%s", err.text);
    else {
        daemon_log("what was learned of %s is forgotten: by uid %u", name, (unsigned)request->uid);
        actions_reply_once_stored(daemon, request, 200, json_pack("{s:s}", "forgotten", name),
                                  "it takes effect once that works, unless carmad ends before");
        engine_turn(daemon->engine);
    }
    json_decref(body);
}

void learned_get(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, get, REFUSAL);
}

void learned_forget(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, forget, REFUSAL);
}
