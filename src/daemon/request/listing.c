#include "daemon/request/listing.h"

#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "base/handle.h"
#include "base/json/moment.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/strbuf.h"
#include "daemon/request/requests.h"
#include "daemon/request/selection.h"
#include "daemon/view/access.h"

#define PIECE    200  /* jobs, some milliseconds */
#define OF_A_JOB 1400 /* bytes, most of them */

#define LATER_WALL_MS 50

/* The request. */
struct wanted {
    struct selection selection;
    uint64_t after;
    bool folded; /* the jobs of an array that wait alike are one */
    uint64_t most;
    bool last; /* the last of them, not the first */
};

/* The jobs of an array follow one another. Those that wait for the first time and want the same as the first of them
 * are listed by it; one that was edited stands for itself. The first may be forgotten from piece to piece. */
struct fold {
    uint64_t array;
    uint64_t listed[JOB_STATE_COUNT]; /* the first of that state; 0: none yet */
};

struct listing {
    struct fold fold;
    struct listings *listings;
    struct http_request *request;
    struct wanted wanted;
    uint64_t at;      /* the job that was looked at last */
    uint64_t skipped; /* still to be left out at the beginning */
    uint64_t listed;  /* in the answer */
    uint64_t all;     /* when it was begun */
    int64_t now_ns;
    struct strbuf text;
    uv_idle_t *idle; /* from piece to piece: a timer of 0 ms would leave others no turn in between */
    bool begun;
    struct listing *next, *prev;
};

struct listings {
    struct daemon *daemon;
    struct listing *first; /* in the order of arrival */
    uv_timer_t *later;     /* while some wait until their user takes earlier answers */
};

static bool can_fold(const struct job_view *view)
{
    return view->wants->array && view->attempts == 0 && (view->state == JOB_QUEUED || view->state == JOB_HELD);
}

/* Whether an earlier one stands for it. */
static bool is_folded(struct fold *fold, const struct wanted *wanted, const struct job_view *view)
{
    const struct job_view *first;

    if (!wanted->folded || !can_fold(view))
        return false;
    if (fold->array != view->wants->array)
        *fold = (struct fold){.array = view->wants->array};
    if ((first = views_find(view->views, fold->listed[view->state])))
        return first->wants == view->wants;
    fold->listed[view->state] = view->id;
    return false;
}

/* Those for which it stands, itself included, and the index of the last of them. */
static uint64_t count_folded(struct selection *selection, const struct job_view *view, uint32_t *last)
{
    const struct job_view *other = view, *end = view;
    uint64_t count = 0;

    for (; other && other->wants->array == view->wants->array; other = other->hh.next)
        if (selection_has(selection, other) && can_fold(other) && other->state == view->state &&
            other->wants == view->wants) {
            count++;
            end = other;
        }
    *last = job_view_array(end).index;
    return count;
}

/* False: it has been answered that this is not known. */
static bool read_wanted(const struct daemon *daemon, struct http_request *request, struct wanted *wanted)
{
    const char *most = http_query(request, "limit"), *last = http_query(request, "last");
    const char *after = http_query(request, "after");

    if (most && last)
        http_reply_error(request, 400, "limit and last together are not known: say one of them");
    else if (!requests_read_number(last ? last : most, 9, LISTING_MOST, &wanted->most))
        http_reply_error(request, 400, "%s '%.40s' is not a number of jobs", last ? "last" : "limit",
                         last ? last : most);
    else if (!requests_read_number(after, 18, 0, &wanted->after))
        http_reply_error(request, 400, "after '%.40s' is not a job's number", after);
    else if (selection_read(daemon, request, selection_states_unfinished(), &wanted->selection)) {
        wanted->folded = http_query(request, "folded");
        /* Of the ended ones people ask for the latest, of the others for the first in the queue. */
        wanted->last = last || (most && !after && !(wanted->selection.states & selection_states_unfinished()));
        if (wanted->most > LISTING_MOST)
            wanted->most = LISTING_MOST;
        return true;
    }
    return false;
}

static void listing_free(struct listing *listing)
{
    DL_DELETE(listing->listings->first, listing);
    uv_close((uv_handle_t *)listing->idle, free_handle);
    strbuf_release(&listing->text);
    selection_release(&listing->wanted.selection);
    free(listing);
}

/* The first one behind the job that was looked at last, which may have been forgotten meanwhile. */
static const struct job_view *go_on_from(const struct views *views, uint64_t job)
{
    const struct job_view *view = job ? views_find(views, job) : NULL;

    if (view)
        return view->hh.next;
    for (view = views->jobs; view && view->id <= job; view = view->hh.next)
        ;
    return view;
}

static void add(struct listing *listing, const struct job_view *view)
{
    json_t *json = job_view_to_json(view, listing->listings->daemon->core, listing->now_ns,
                                    access_view_of(listing->request->uid, view->wants->uid), false);
    CLEANUP(free_ptr) char *text = NULL;
    uint32_t last;

    if (listing->wanted.folded && listing->fold.listed[view->state] == view->id) {
        json_t *array = json_object_get(json, "array");
        json_object_set_new(array, "folded",
                            json_integer((json_int_t)count_folded(&listing->wanted.selection, view, &last)));
        json_object_set_new(array, "last", json_integer(last));
    }
    text = printable_json(json_dumps(json, JSON_COMPACT));
    strbuf_printf(&listing->text, "%s%s", listing->listed ? "," : "", text);
    listing->listed++;
    json_decref(json);
}

static void begin_next(struct listings *listings);

static void on_piece(uv_idle_t *idle)
{
    struct listing *listing = idle->data;
    struct listings *listings = listing->listings;
    const struct job_view *view = go_on_from(&listings->daemon->views, listing->at);
    unsigned added = 0;

    if (http_has_gone(listing->request)) {
        http_reply_stopping(listing->request); /* nobody reads it */
        listing_free(listing);
        begin_next(listings);
        return;
    }
    for (; view && listing->listed < listing->wanted.most && added < PIECE; view = view->hh.next) {
        listing->at = view->id;
        if (!selection_has(&listing->wanted.selection, view) || is_folded(&listing->fold, &listing->wanted, view))
            continue;
        if (listing->skipped) {
            listing->skipped--;
            continue;
        }
        add(listing, view);
        added++;
    }
    if (view && listing->listed < listing->wanted.most)
        return;
    strbuf_printf(&listing->text, "],\"left_out\":%" PRIu64 "}",
                  listing->all > listing->listed ? listing->all - listing->listed : 0);
    http_reply_text(listing->request, "application/json", strbuf_steal(&listing->text));
    listing_free(listing);
    begin_next(listings);
}

static void begin(struct listing *listing)
{
    struct wanted *wanted = &listing->wanted;
    struct fold fold = {0};
    char now[MOMENT_TEXT];

    listing->begun = true;
    listing->now_ns = nodetime_now_ns();
    for (const struct job_view *view = go_on_from(&listing->listings->daemon->views, wanted->after); view;
         view = view->hh.next)
        listing->all += selection_has(&wanted->selection, view) && !is_folded(&fold, wanted, view);
    if (wanted->last && listing->all > wanted->most)
        listing->skipped = listing->all - wanted->most;
    /* A large text that grows would do so between lasting allocations, and leave its pages to the heap. */
    array_reserve(listing->text.text, listing->text.capacity,
                  OF_A_JOB * (listing->all < wanted->most ? listing->all : wanted->most) + 1);
    strbuf_printf(&listing->text, "{\"now_ns\":%" PRId64 ",\"now\":%s,\"jobs\":[", nodetime_shown_ns(listing->now_ns),
                  moment_text(nodetime_shown_ns(listing->now_ns), now));
    uv_idle_start(listing->idle, on_piece);
}

static bool is_first_of_user(const struct listings *listings, const struct listing *listing)
{
    const struct listing *other = listings->first;

    while (other->request->uid != listing->request->uid)
        other = other->next;
    return other == listing;
}

static void on_later(uv_timer_t *timer)
{
    begin_next(timer->data);
}

/* One at a time of each user, and none before he has taken enough of the answers that are ready: a list of all jobs is
 * large. */
static void begin_next(struct listings *listings)
{
    struct listing *listing;
    bool wait = false;

    DL_FOREACH (listings->first, listing) {
        if (listing->begun || !is_first_of_user(listings, listing))
            continue;
        if (http_has_room(listing->request))
            begin(listing);
        else
            wait = true;
    }
    if (wait)
        uv_timer_start(listings->later, on_later, LATER_WALL_MS, 0);
}

void listings_get(struct listings *listings, struct http_request *request)
{
    struct wanted wanted = {0};
    struct listing *listing;

    if (!read_wanted(listings->daemon, request, &wanted))
        return;
    listing = xcalloc(1, sizeof *listing);
    *listing = (struct listing){.listings = listings,
                                .request = request,
                                .wanted = wanted,
                                .at = wanted.after,
                                .idle = xmalloc(sizeof *listing->idle)};
    uv_idle_init(listings->daemon->loop, listing->idle);
    listing->idle->data = listing;
    DL_APPEND(listings->first, listing);
    begin_next(listings);
}

struct listings *listings_new(struct daemon *daemon)
{
    struct listings *listings = xcalloc(1, sizeof *listings);

    listings->daemon = daemon;
    listings->later = xmalloc(sizeof *listings->later);
    uv_timer_init(daemon->loop, listings->later);
    listings->later->data = listings;
    return listings;
}

void listings_free(struct listings *listings)
{
    if (!listings)
        return;
    while (listings->first) {
        http_reply_stopping(listings->first->request);
        listing_free(listings->first);
    }
    uv_close((uv_handle_t *)listings->later, free_handle);
    free(listings);
}
