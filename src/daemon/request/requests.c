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
#include "base/strbuf.h"
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
#include "daemon/request/openapi.h"
#include "daemon/request/reservations.h"
#include "daemon/request/series_json.h"
#include "daemon/request/share_table.h"
#include "daemon/request/status.h"
#include "daemon/run/ending.h"
#include "daemon/run/runs.h"
#include "daemon/view/access.h"
#include "daemon/whatif/whatif.h"

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

static void show_job(struct daemon *daemon, struct http_request *request, const struct job_view *view)
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

/* ---- Answers: `part` is what stands for the first {} of the route's path, with what follows it ---- */

/* NULL: it has been answered that there is none. */
static const struct job_view *job_of(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view;
    char *end = NULL;
    uint64_t id;

    errno = 0;
    id = *part >= '0' && *part <= '9' ? strtoull(part, &end, 10) : 0;
    view = id && errno == 0 && (*end == '/' || *end == '\0') ? views_find(&daemon->views, id) : NULL;
    if (view && job_view_is_shown(view))
        return view;
    http_reply_error(request, 404, "there is no job '%.*s'", (int)strcspn(part, "/"), part);
    return NULL;
}

static void get_job(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view = job_of(daemon, request, part);

    if (view)
        show_job(daemon, request, view);
}

static void get_script(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view = job_of(daemon, request, part);

    if (view && access_view_of(request->uid, view->wants->uid) == ACCESS_ALL)
        history_get_script(daemon, request, view->id);
    else if (view)
        http_reply_error(request, 403, "job %" PRIu64 " belongs to %s", view->id, job_view_user(view));
}

static void get_job_series(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view = job_of(daemon, request, part);

    if (view)
        http_reply_text(request, "application/json", series_of_job(daemon, view->id));
}

static void explain(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view = job_of(daemon, request, part);

    if (view)
        explanation_get(daemon, request, view);
}

static void move_job(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view = job_of(daemon, request, part);

    if (view)
        change_place(daemon->changes, request, view);
}

/* The path's last word is the verb. */
static void change_one(struct daemon *daemon, struct http_request *request, const char *part)
{
    const struct job_view *view = job_of(daemon, request, part);

    if (view)
        change_job(daemon->changes, request, view, change_find(strrchr(part, '/') + 1));
}

static void change_jobs(struct daemon *daemon, struct http_request *request, const char *part)
{
    (void)part;
    change_many(daemon->changes, request, change_find(strrchr(request->path, '/') + 1));
}

static void get_history(struct daemon *daemon, struct http_request *request, const char *part)
{
    (void)part;
    history_get(daemon, request, request->path + strlen("/v1/history"));
}

static void get_whatif(struct daemon *daemon, struct http_request *request, const char *part)
{
    whatif_show(daemon->whatif, request, part);
}

static void lease(struct daemon *daemon, struct http_request *request, const char *part)
{
    (void)part;
    leases_handle(daemon->leases, request, request->path + strlen("/v1/leases"));
}

#define DEFAULT_SPAN_S 3600

static void get_series(struct daemon *daemon, struct http_request *request, const char *part)
{
    const char *span = http_query(request, "span"), *most = http_query(request, "points");
    uint64_t span_s, points;

    (void)part;
    if (!requests_read_number(span, 9, DEFAULT_SPAN_S, &span_s) || span_s == 0)
        http_reply_error(request, 400, "span '%.40s' is not a number of seconds", span);
    else if (!requests_read_number(most, 9, SERIES_POINTS, &points) || points == 0)
        http_reply_error(request, 400, "points '%.40s' is not a number of steps", most);
    else
        http_reply_text(request, "application/json",
                        series_of_gpus(daemon, (int64_t)span_s, (int64_t)points, nodetime_now_ns()));
}

static void get_metrics(struct daemon *daemon, struct http_request *request, const char *part)
{
    bool open = http_wants(request, OPENMETRICS_TYPE, "text/plain");

    (void)part;
    http_reply_text(request, open ? OPENMETRICS_TYPE "; version=1.0.0; charset=utf-8" : PROMETHEUS_MEDIA_TYPE,
                    metrics_text(daemon, open));
}

/* Those that need no more than the request. */
#define SIMPLE(name, does)                                                                                             \
    static void name(struct daemon *daemon, struct http_request *request, const char *part)                            \
    {                                                                                                                  \
        (void)part;                                                                                                    \
        (void)daemon;                                                                                                  \
        does;                                                                                                          \
    }
SIMPLE(get_openapi, http_reply_text(request, "application/json", xstrdup(openapi_text())))
SIMPLE(get_status, http_reply(request, 200, status_to_json(daemon, nodetime_now_ns())))
SIMPLE(get_jobs, listings_get(daemon->listings, request))
SIMPLE(submit, actions_submit(daemon, request, false))
SIMPLE(judge, actions_submit(daemon, request, true))
SIMPLE(edit_jobs, change_edit(daemon->changes, request))
SIMPLE(get_gpus, http_reply(request, 200, node_to_json(daemon->node)))
SIMPLE(close_gpu, gpu_close(daemon, request))
SIMPLE(reserve_gpus, reservations_make(daemon, request))
SIMPLE(unreserve_gpus, reservations_take_back(daemon, request))
SIMPLE(get_stats, history_get_stats(daemon, request))
SIMPLE(get_events, events_open(daemon->events, request))
SIMPLE(get_share, share_table_get(daemon, request))
SIMPLE(give_share, share_table_give(daemon, request))
SIMPLE(get_learned, learned_get(daemon, request))
SIMPLE(forget, learned_forget(daemon, request))
SIMPLE(ask_whatif, whatif_ask(daemon->whatif, request))
SIMPLE(get_capacity, leases_get_capacity(daemon->leases, request))
#undef SIMPLE

/* ---- Which is which ---- */

static const struct route {
    const char *method, *path;
    void (*answer)(struct daemon *daemon, struct http_request *request, const char *part);
} routes[] = {
#define ROUTE(method, path, answer, who, query, body, status, schema, help) {#method, path, answer},
#include "daemon/request/routes.def"
};

/* Whether the path is one of the pattern's. */
static bool fits(const char *pattern, const char *path, const char **part)
{
    for (*part = ""; *pattern; pattern++, path++) {
        if (*pattern == '{' && *path && *path != '/') {
            *part = **part ? *part : path;
            path += strcspn(path, "/") - 1;
            pattern = strchr(pattern, '}');
        } else if (*pattern != *path) {
            return false;
        }
    }
    return !*path;
}

static bool is_lease(const char *path)
{
    return strcmp(path, "/v1/leases") == 0 || strncmp(path, "/v1/leases/", strlen("/v1/leases/")) == 0;
}

size_t requests_body_limit(const char *method, const char *path)
{
    if (strcmp(method, "POST") == 0 && (strcmp(path, "/v1/jobs") == 0 || strcmp(path, "/v1/jobs/check") == 0))
        return SPEC_MAX_REQUEST;
    return is_lease(path) ? LEASE_REQUEST_MAX_BYTES : HTTP_SMALL_BODY_BYTES;
}

void requests_handle(struct http_request *request, void *user)
{
    const char *part, *known = NULL;
    struct strbuf methods = {0};

    for (const struct route *route = routes; route < routes + array_size(routes); route++) {
        if ((known && strcmp(route->path, known) != 0) || !fits(route->path, request->path, &part))
            continue;
        if (strcmp(route->method, request->method) == 0) {
            strbuf_release(&methods);
            route->answer(user, request, part);
            return;
        }
        known = route->path;
        strbuf_printf(&methods, "%s%s", methods.length ? " or " : "", route->method);
    }
    if (known)
        http_reply_error(request, 405, "%s %s is not known: use %s", request->method, request->path, methods.text);
    else if (dashboard_has(request->path))
        dashboard_answer(request);
    else
        http_reply_error(request, 404, "there is no '%.60s'", request->path);
    strbuf_release(&methods);
}
