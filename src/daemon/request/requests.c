#include "daemon/request/requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/lease.h"
#include "api/or_null.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/lease/leases.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/prometheus.h"
#include "daemon/node/node.h"
#include "daemon/request/actions.h"
#include "daemon/request/changes.h"
#include "daemon/request/dashboard.h"
#include "daemon/request/events.h"
#include "daemon/request/explanation.h"
#include "daemon/request/gpu_close.h"
#include "daemon/request/history_query.h"
#include "daemon/request/learned.h"
#include "daemon/request/listing.h"
#include "daemon/request/reservations.h"
#include "daemon/request/series_json.h"
#include "daemon/request/share_table.h"
#include "daemon/request/status.h"
#include "daemon/run/ending.h"
#include "daemon/run/runs.h"
#include "daemon/view/access.h"
#include "daemon/whatif/whatif.h"

#define API_PREFIX "/v1/"

bool requests_read_number(const char *text, size_t digits, uint64_t otherwise, uint64_t *number)
{
    *number = otherwise;
    if (!text)
        return true;
    if (!*text || strlen(text) > digits || strspn(text, "0123456789") != strlen(text))
        return false;
    *number = strtoull(text, NULL, 10);
    return true;
}

static void get_job(struct daemon *daemon, struct http_request *request, const struct job_view *view)
{
    enum access_view access = access_view_of(request->uid, view->wants->uid);
    json_t *json = job_view_to_json(view, daemon->core, nodetime_now_ns(), access, true);
    const char *gap = runs_host_limits_gap(daemon->runs, view->common->spec);
    struct launch_status status;
    bool has_failure = access == ACCESS_ALL && runs_last_status(daemon->runs, view, &status) == 0;

    CLEANUP(free_ptr) char *terminal = access == ACCESS_ALL ? runs_terminal_of(daemon->runs, view) : NULL;

    json_object_set_new(json, "attach", text_or_null(access == ACCESS_ALL ? view->common->spec->attach : NULL));
    json_object_set_new(json, "terminal", text_or_null(terminal));
    json_object_set_new(json, "strays", node_strays_to_json(daemon->node, view->id));
    json_object_set_new(json, "failure", has_failure ? ending_to_json(view, &status) : json_null());
    json_object_set_new(json, "estimate", access == ACCESS_ALL ? job_view_estimate_to_json(view) : json_null());
    json_object_set_new(json, "untried", explanation_untried(daemon, view, access));
    json_object_set_new(json, "host_limits_gap", gap ? json_string(gap) : json_null());
    json_object_set_new(json, "run_times", explanation_run_times(daemon, view, access));
    http_reply(request, 200, json);
}

static void get_script(struct daemon *daemon, struct http_request *request, const struct job_view *view)
{
    if (access_view_of(request->uid, view->wants->uid) == ACCESS_ALL)
        history_get_script(daemon, request, view->id);
    else
        http_reply_error(request, 403, "job %" PRIu64 " belongs to %s", view->id, job_view_user(view));
}

#define DEFAULT_SPAN_S 3600

static void get_series(struct daemon *daemon, struct http_request *request)
{
    const char *span = http_query(request, "span"), *most = http_query(request, "points");
    uint64_t span_s, points;

    if (!requests_read_number(span, 9, DEFAULT_SPAN_S, &span_s) || span_s == 0)
        http_reply_error(request, 400, "span '%.40s' is not a number of seconds", span);
    else if (!requests_read_number(most, 9, SERIES_POINTS, &points) || points == 0)
        http_reply_error(request, 400, "points '%.40s' is not a number of steps", most);
    else
        http_reply_text(request, "application/json",
                        series_of_gpus(daemon, (int64_t)span_s, (int64_t)points, nodetime_now_ns()));
}

/* ---- Which is which ---- */

static bool is_get(const struct http_request *request)
{
    return strcmp(request->method, "GET") == 0;
}

static void wrong_method(struct http_request *request, const char *right)
{
    http_reply_error(request, 405, "%s %s is not known: use %s", request->method, request->path, right);
}

static void handle_job(struct daemon *daemon, struct http_request *request, const char *rest)
{
    const struct job_view *view;
    bool edits = strcmp(rest, "edit") == 0;
    int verb = change_find(rest);
    char *end;
    uint64_t id;

    if (verb >= 0 || edits) {
        if (edits && strcmp(request->method, "POST") == 0)
            change_edit(daemon->changes, request);
        else if (strcmp(request->method, "POST") == 0)
            change_many(daemon->changes, request, verb);
        else
            wrong_method(request, "POST");
        return;
    }
    errno = 0;
    id = *rest >= '0' && *rest <= '9' ? strtoull(rest, &end, 10) : 0;
    view = id && errno == 0 ? views_find(&daemon->views, id) : NULL;
    if (!view || !job_view_is_shown(view)) {
        http_reply_error(request, 404, "there is no job '%.*s'", (int)strcspn(rest, "/"), rest);
        return;
    }
    if (*end == '\0' || strcmp(end, "/explain") == 0 || strcmp(end, "/series") == 0 || strcmp(end, "/script") == 0) {
        if (!is_get(request))
            wrong_method(request, "GET");
        else if (strcmp(end, "/script") == 0)
            get_script(daemon, request, view);
        else if (strcmp(end, "/series") == 0)
            http_reply_text(request, "application/json", series_of_job(daemon, view->id));
        else if (*end == '\0')
            get_job(daemon, request, view);
        else
            explanation_get(daemon, request, view);
        return;
    }
    verb = *end == '/' ? change_find(end + 1) : -1;
    if (strcmp(end, "/move") == 0 && strcmp(request->method, "POST") == 0)
        change_place(daemon->changes, request, view);
    else if (verb < 0 && strcmp(end, "/move") != 0)
        http_reply_error(request, 404, "there is no '%.60s'", request->path);
    else if (strcmp(request->method, "POST") == 0)
        change_job(daemon->changes, request, view, verb);
    else
        wrong_method(request, "POST");
}

/* `rest` is empty for a question, "/ID" for an answer. */
static void handle_whatif(struct daemon *daemon, struct http_request *request, const char *rest)
{
    bool asks = !*rest;

    if (strcmp(request->method, asks ? "POST" : "GET") != 0)
        wrong_method(request, asks ? "POST" : "GET");
    else if (asks)
        whatif_ask(daemon->whatif, request);
    else
        whatif_show(daemon->whatif, request, rest + 1);
}

static bool is_history(const char *path)
{
    return strcmp(path, "history") == 0 || strncmp(path, "history/", strlen("history/")) == 0;
}

static bool is_lease(const char *path)
{
    return strcmp(path, "leases") == 0 || strncmp(path, "leases/", strlen("leases/")) == 0;
}

size_t requests_body_limit(const char *method, const char *path)
{
    if (strcmp(method, "POST") == 0 && strcmp(path, API_PREFIX "jobs") == 0)
        return SPEC_MAX_REQUEST;
    return strncmp(path, API_PREFIX, strlen(API_PREFIX)) == 0 && is_lease(path + strlen(API_PREFIX))
               ? LEASE_REQUEST_MAX_BYTES
               : HTTP_SMALL_BODY_BYTES;
}

void requests_handle(struct http_request *request, void *user)
{
    struct daemon *daemon = user;
    const char *path = request->path;

    if (strcmp(path, "/metrics") == 0) {
        if (is_get(request))
            http_reply_text(request, PROMETHEUS_MEDIA_TYPE, metrics_text(daemon));
        else
            wrong_method(request, "GET");
        return;
    }
    if (dashboard_has(path)) {
        dashboard_answer(request);
        return;
    }
    if (strncmp(path, API_PREFIX, strlen(API_PREFIX)) != 0) {
        http_reply_error(request, 404, "there is no '%.60s'", path);
        return;
    }
    path += strlen(API_PREFIX);
    if (strcmp(path, "jobs") == 0 && strcmp(request->method, "POST") == 0)
        actions_submit(daemon, request);
    else if (is_lease(path))
        leases_handle(daemon->leases, request, path + 6);
    else if (strcmp(path, "capacity") == 0)
        leases_get_capacity(daemon->leases, request);
    else if (strncmp(path, "jobs/", 5) == 0)
        handle_job(daemon, request, path + 5);
    else if (strcmp(path, "whatif") == 0 || strncmp(path, "whatif/", 7) == 0)
        handle_whatif(daemon, request, path + 6);
    else if (strcmp(path, "learned/forget") == 0 && strcmp(request->method, "POST") == 0)
        learned_forget(daemon, request);
    else if (strcmp(path, "gpus/reserve") == 0)
        reservations_make(daemon, request);
    else if (strcmp(path, "gpus/unreserve") == 0)
        reservations_take_back(daemon, request);
    else if (strncmp(path, "gpus/", 5) == 0)
        gpu_close(daemon, request);
    else if (strcmp(path, "share") == 0 && strcmp(request->method, "POST") == 0)
        share_table_give(daemon, request);
    else if (strcmp(path, "learned/forget") == 0)
        wrong_method(request, "POST");
    else if (strcmp(path, "jobs") != 0 && strcmp(path, "learned") != 0 && strcmp(path, "status") != 0 &&
             strcmp(path, "gpus") != 0 && strcmp(path, "stats") != 0 && strcmp(path, "events") != 0 &&
             strcmp(path, "series") != 0 && strcmp(path, "share") != 0 && !is_history(path))
        http_reply_error(request, 404, "there is no '%.60s'", request->path);
    else if (!is_get(request))
        wrong_method(request, "GET");
    else if (strcmp(path, "jobs") == 0)
        listings_get(daemon->listings, request);
    else if (strcmp(path, "share") == 0)
        share_table_get(daemon, request);
    else if (strcmp(path, "learned") == 0)
        learned_get(daemon, request);
    else if (strcmp(path, "status") == 0)
        http_reply(request, 200, status_to_json(daemon, nodetime_now_ns()));
    else if (strcmp(path, "series") == 0)
        get_series(daemon, request);
    else if (strcmp(path, "events") == 0)
        events_open(daemon->events, request);
    else if (is_history(path))
        history_get(daemon, request, path + strlen("history"));
    else if (strcmp(path, "stats") == 0)
        history_get_stats(daemon, request);
    else
        http_reply(request, 200, node_to_json(daemon->node));
}
