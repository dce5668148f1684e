/* The stream of changes, GET /v1/events, which the dashboard follows.
 *
 * events_open() sends a new watcher the whole state (tell_all_jobs). From then on on_tick(), once a second, finds what
 * has changed. look() gives a new version to what changes without a record, such as a reason to wait. tell_status(),
 * tell_gpus() and tell_jobs() then tell each watcher what is newer than the versions it has seen. A text is made once
 * for all watchers with the same rights (text_for). */
#include "daemon/request/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/digest.h"
#include "base/handle.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/strbuf.h"
#include "core/ledger.h"
#include "daemon/node/node_live.h"
#include "daemon/request/status.h"

#define TICK_MS       1000
#define COMMENT_TICKS 15
#define WAITING_MOST  200 /* number of waiting jobs that are reported, the first ones */
#define ENDED_MOST    100 /* to new watchers */
#define TURN_JOBS     500 /* that have changed, in one tick */
#define REASONS_TICKS 5   /* period of looking at values that change without a record */

struct watcher {
    struct events *events;
    struct http_stream *stream;
    uid_t uid;
    uint64_t status_seen, gpus_seen, jobs_seen; /* versions */
    unsigned quiet_ticks;
    bool due;          /* in this tick */
    unsigned told;     /* jobs, in this tick */
    struct strbuf out; /* of this tick */
    struct watcher *next, *prev;
};

struct events {
    struct daemon *daemon;
    uv_timer_t *timer;
    struct watcher *watchers;
    json_t *status; /* as it was last; NULL: it was not looked at yet */
    struct node_live *gpus;
    uint64_t status_version, gpus_version;
    uint64_t entered_version; /* views.version at the last look new ones among the first that wait */
    int64_t shift_ns;         /* of the times that watchers were told */
    unsigned ticks;
};

struct events *events_new(struct daemon *daemon)
{
    struct events *events = xcalloc(1, sizeof *events);

    events->daemon = daemon;
    events->gpus = node_live_new();
    events->gpus_version = 1; /* a node without GPUs is told, too */
    events->timer = xmalloc(sizeof *events->timer);
    uv_timer_init(daemon->loop, events->timer);
    events->timer->data = events;
    return events;
}

static void watcher_free(struct watcher *watcher)
{
    strbuf_release(&watcher->out);
    free(watcher);
}

void events_free(struct events *events)
{
    struct watcher *watcher, *next;

    if (!events)
        return;
    DL_FOREACH_SAFE (events->watchers, watcher, next) {
        http_stream_close(watcher->stream);
        watcher_free(watcher);
    }
    uv_close((uv_handle_t *)events->timer, free_handle);
    node_live_free(events->gpus);
    json_decref(events->status);
    free(events);
}

/* ---- Changes ---- */

static void look_at_status(struct events *events, int64_t now_ns)
{
    json_t *status = status_to_json(events->daemon, now_ns);

    if (events->status)
        moment_set(events->status, "now_ns", nodetime_shown_ns(now_ns), true);
    if (!events->status || !json_equal(events->status, status))
        events->status_version++;
    json_decref(events->status);
    events->status = status;
}

static bool waits(const struct job_view *view)
{
    return view->state == JOB_HELD || view->state == JOB_QUEUED || view->state == JOB_CRASHED;
}

/* Why it waits and with which request; both change without a record of the job. Never 0. */
static uint64_t waits_as(const struct events *events, const struct job_view *view, int64_t now_ns)
{
    struct reason reason = core_reason(events->daemon->core, view->id, now_ns);
    uint32_t source;
    int64_t reserved_bytes = job_view_reserved_bytes(view, events->daemon->core, &source);
    char text[REASON_TEXT];
    uint64_t hash = DIGEST_EMPTY;

    reason_format(&reason, reason.until_ns, text); /* but for how long it still takes, which passes by itself */
    hash = digest_add(hash, text, strlen(text));
    hash = digest_add(hash, &reason.until_ns, sizeof reason.until_ns);
    hash = digest_add(hash, &reserved_bytes, sizeof reserved_bytes);
    hash = digest_add(hash, &source, sizeof source);
    return hash ? hash : 1;
}

/* How much its neighbours are estimated to slow it, which changes as they come and go; and how far it has come. Never
 * 0. */
static uint64_t runs_as(const struct events *events, const struct job_view *view)
{
    int64_t slowdown = job_view_slowdown_permille(view, events->daemon->core);
    int64_t at_ns = view->run->progress ? view->run->progress->count.at_ns : 0;
    uint64_t hash = digest_add(DIGEST_EMPTY, &slowdown, sizeof slowdown);

    hash = digest_add(hash, &at_ns, sizeof at_ns);
    return hash ? hash : 1;
}

static void look_at(struct events *events, struct job_view *view, uint64_t as)
{
    if (as != view->shown_as)
        views_touch(&events->daemon->views, view);
    view->shown_as = as;
}

static void look_at_running(struct events *events)
{
    const struct core *core = events->daemon->core;

    for (uint32_t g = 0; g < core_gpu_count(core); g++) {
        const struct gpu *gpu = core_gpu(core, g);
        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            struct job_view *view = views_find(&events->daemon->views, gpu->residents[i]->id);
            if (view && view->placement_count && view->placements[0].gpu == g) /* once per job */
                look_at(events, view, runs_as(events, view));
        }
    }
}

/* Marks those of the first WAITING_MOST that are shown otherwise by now: those that have come among them. Where `all`
 * are looked at, it also marks those that wait for something else. */
static void look_at_waiting(struct events *events, int64_t now_ns, bool all)
{
    const struct views *views = &events->daemon->views;
    unsigned count = 0;

    if (!all && events->entered_version == views->version)
        return;
    for (struct job_view *view = views->jobs; view && count < WAITING_MOST; view = view->hh.next) {
        if (!waits(view))
            continue;
        count++;
        if (view->shown_as && !all)
            continue;
        look_at(events, view, waits_as(events, view, now_ns));
    }
    events->entered_version = views->version;
}

/* Where the wall clock was set, every time is shown otherwise. */
static void look_at_clock(struct events *events)
{
    int64_t shift_ns = nodetime_shift_ns();

    for (struct job_view *view = events->daemon->views.jobs; view && shift_ns != events->shift_ns; view = view->hh.next)
        views_touch(&events->daemon->views, view);
    events->shift_ns = shift_ns;
}

static void look(struct events *events, int64_t now_ns, bool all)
{
    look_at_clock(events);
    look_at_waiting(events, now_ns, all);
    if (all)
        look_at_running(events);
    look_at_status(events, now_ns);
    events->gpus_version += node_live_look(events->gpus, events->daemon->node);
}

/* ---- Telling ---- */

static void tell_event(struct watcher *watcher, const char *name, const char *data)
{
    strbuf_printf(&watcher->out, "event: %s\ndata: ", name);
    strbuf_puts(&watcher->out, data);
    strbuf_puts(&watcher->out, "\n\n");
}

static void tell_status(struct events *events)
{
    CLEANUP(free_ptr) char *text = NULL;
    struct watcher *watcher;

    DL_FOREACH (events->watchers, watcher) {
        if (!watcher->due || watcher->status_seen == events->status_version)
            continue;
        if (!text)
            text = printable_json(json_dumps(events->status, JSON_COMPACT));
        tell_event(watcher, "status", text);
        watcher->status_seen = events->status_version;
    }
}

static void tell_gpus(struct events *events, int64_t now_ns)
{
    CLEANUP(free_ptr) char *text = NULL;
    struct watcher *watcher;

    DL_FOREACH (events->watchers, watcher) {
        if (!watcher->due || watcher->gpus_seen == events->gpus_version)
            continue;
        if (!text) {
            json_t *json = node_live_to_json(events->gpus, events->daemon->node, now_ns);
            text = printable_json(json_dumps(json, JSON_COMPACT));
            json_decref(json);
        }
        tell_event(watcher, "gpus", text);
        watcher->gpus_seen = events->gpus_version;
    }
}

/* A job's text is made at most once for all watchers that see the same of it. */
struct texts {
    char *of[ACCESS_ALL + 1];
};

static const char *text_for(struct texts *texts, const struct events *events, const struct job_view *view, uid_t uid,
                            int64_t now_ns)
{
    enum access_view access = access_view_of(uid, view->wants->uid);
    json_t *json;

    if (!texts->of[access]) {
        json = job_view_to_json(view, events->daemon->core, now_ns, access, false);
        texts->of[access] = printable_json(json_dumps(json, JSON_COMPACT));
        json_decref(json);
    }
    return texts->of[access];
}

static void begin_jobs(struct watcher *watcher, int64_t now_ns)
{
    int64_t shown_ns = nodetime_shown_ns(now_ns);
    char now[MOMENT_TEXT];

    strbuf_printf(&watcher->out, "event: jobs\ndata: {\"now_ns\":%" PRId64 ",\"now\":%s,\"jobs\":[", shown_ns,
                  moment_text(shown_ns, now));
}

static void tell_job(struct watcher *watcher, const char *text, int64_t now_ns)
{
    if (watcher->told++ == 0)
        begin_jobs(watcher, now_ns);
    else
        strbuf_puts(&watcher->out, ",");
    strbuf_puts(&watcher->out, text);
}

static void end_jobs(struct watcher *watcher)
{
    if (watcher->told)
        strbuf_puts(&watcher->out, "]}\n\n");
    watcher->told = 0;
}

/* One that waits behind the first is not told of until it comes among them. */
static bool is_told(const struct job_view *view)
{
    return job_view_is_shown(view) && (!waits(view) || view->shown_as);
}

static void tell_changed(struct events *events, struct job_view *view, int64_t now_ns)
{
    struct texts texts = {{NULL}};
    struct watcher *watcher;

    DL_FOREACH (events->watchers, watcher) {
        if (!watcher->due || watcher->jobs_seen >= view->version || watcher->told == TURN_JOBS)
            continue;
        if (is_told(view))
            tell_job(watcher, text_for(&texts, events, view, watcher->uid, now_ns), now_ns);
        watcher->jobs_seen = view->version;
    }
    for (size_t i = 0; i < array_size(texts.of); i++)
        free(texts.of[i]);
}

/* The jobs that a client has not been told of in their present form; the oldest change comes first. */
static void tell_jobs(struct events *events, int64_t now_ns)
{
    uint64_t seen_by_all = UINT64_MAX;
    struct job_view *view = events->daemon->views.latest;
    struct watcher *watcher;

    DL_FOREACH (events->watchers, watcher)
        if (watcher->due && watcher->jobs_seen < seen_by_all)
            seen_by_all = watcher->jobs_seen;
    if (!view || view->version <= seen_by_all)
        return;
    while (view->earlier && view->earlier->version > seen_by_all)
        view = view->earlier;
    for (; view; view = view->later)
        tell_changed(events, view, now_ns);
    DL_FOREACH (events->watchers, watcher)
        end_jobs(watcher);
}

static void send_told(struct events *events)
{
    struct watcher *watcher;

    DL_FOREACH (events->watchers, watcher) {
        if (!watcher->due)
            continue;
        if (!watcher->out.length && ++watcher->quiet_ticks == COMMENT_TICKS)
            strbuf_puts(&watcher->out, ":\n\n");
        if (watcher->out.length)
            watcher->quiet_ticks = 0;
        http_stream_send(watcher->stream, watcher->out.text, watcher->out.length);
        strbuf_release(&watcher->out);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct events *events = timer->data;
    int64_t now_ns = nodetime_now_ns();
    struct watcher *watcher;
    bool any = false;

    DL_FOREACH (events->watchers, watcher)
        any |= watcher->due = http_stream_taken(watcher->stream);
    if (!any)
        return;
    look(events, now_ns, ++events->ticks % REASONS_TICKS == 0);
    tell_status(events);
    tell_gpus(events, now_ns);
    tell_jobs(events, now_ns);
    send_told(events);
}

/* ---- Coming and going ---- */

static int by_end(const void *one, const void *other)
{
    const struct job_view *a = *(struct job_view *const *)one, *b = *(struct job_view *const *)other;

    return a->ended_ns != b->ended_ns ? (a->ended_ns > b->ended_ns) - (a->ended_ns < b->ended_ns)
                                      : (a->id > b->id) - (a->id < b->id);
}

static void tell_one(struct watcher *watcher, const struct job_view *view, int64_t now_ns)
{
    struct texts texts = {{NULL}};

    tell_job(watcher, text_for(&texts, watcher->events, view, watcher->uid, now_ns), now_ns);
    for (size_t i = 0; i < array_size(texts.of); i++)
        free(texts.of[i]);
}

/* Those that run, the first that wait, the last that ended. */
static void tell_all_jobs(struct watcher *watcher, int64_t now_ns)
{
    const struct views *views = &watcher->events->daemon->views;
    const struct job_view **ended = NULL;
    size_t ended_count = 0, ended_capacity = 0;
    unsigned waiting = 0;

    for (const struct job_view *view = views->jobs; view; view = view->hh.next) {
        if (!job_view_is_shown(view))
            continue;
        if (job_state_ended(view->state)) {
            array_reserve(ended, ended_capacity, ended_count + 1);
            ended[ended_count++] = view;
        } else if (!waits(view) || waiting++ < WAITING_MOST) {
            tell_one(watcher, view, now_ns);
        }
    }
    if (ended_count)
        qsort(ended, ended_count, sizeof *ended, by_end);
    for (size_t i = ended_count > ENDED_MOST ? ended_count - ENDED_MOST : 0; i < ended_count; i++)
        tell_one(watcher, ended[i], now_ns);
    free(ended);
    if (watcher->told++ == 0) /* an empty node is told as such */
        begin_jobs(watcher, now_ns);
    end_jobs(watcher);
    watcher->jobs_seen = views->version;
}

static void on_closed(void *user)
{
    struct watcher *watcher = user;
    struct events *events = watcher->events;

    DL_DELETE(events->watchers, watcher);
    watcher_free(watcher);
    if (!events->watchers)
        uv_timer_stop(events->timer);
}

void events_open(struct events *events, struct http_request *request)
{
    int64_t now_ns = nodetime_now_ns();
    struct watcher *watcher = xcalloc(1, sizeof *watcher), *other;

    watcher->events = events;
    watcher->uid = request->uid;
    watcher->stream = http_stream_begin(request, "text/event-stream", on_closed, watcher);
    if (!watcher->stream) {
        watcher_free(watcher);
        return;
    }
    if (!events->watchers)
        uv_timer_start(events->timer, on_tick, TICK_MS, TICK_MS);
    DL_FOREACH (events->watchers, other)
        other->due = false;
    DL_APPEND(events->watchers, watcher);
    watcher->due = true;
    look(events, now_ns, true);
    tell_status(events);
    tell_gpus(events, now_ns);
    tell_all_jobs(watcher, now_ns);
    send_told(events);
}
