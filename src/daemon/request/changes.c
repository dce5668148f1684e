/* How this file works: a change has the numbers of its jobs (choose), asks whether its caller may change others' jobs
 * where there are such (access.h), and is then carried out, PIECE jobs at a time: each piece is a turn of the engine.
 * Where several are under way, they take turns. Jobs may have ended meanwhile: each is looked up when it is its turn.
 * A piece of an edit comes by the administrator's filter before its turn (edit_filter.h). */
#include "daemon/request/changes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "api/array.h"
#include "api/job_signal.h"
#include "base/handle.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "daemon/engine/engine.h"
#include "daemon/request/actions.h"
#include "daemon/edit/edit.h"
#include "daemon/edit/edit_filter.h"
#include "daemon/request/requests.h"
#include "daemon/request/selection.h"
#include "daemon/view/access.h"

#define PIECE 200 /* jobs, some milliseconds */

/* In which order many are taken: the first of them, taken away, would let others start. */
enum change_order { FIRST_FIRST, LAST_FIRST };

static const struct {
    const char *name;
    struct record what;
    enum change_order order;
    int (*read)(const char *text, uint32_t *argument, struct error *err);
} verbs[] = {
#define VERB(name, record, order, listed, help, why) {#name, {.type = RECORD_##record}, order, NULL},
#define TELLS(name, tells, takes, listed, help, why)                                                                   \
    {#name, {.type = RECORD_COMMANDED, .commanded = {.command = COMMAND_##tells}}, FIRST_FIRST, READ_##takes},
#include "api/job_verbs.def"
};

struct change {
    struct changes *changes;
    struct http_request *request;
    struct record what;         /* each job's, but for its time and number */
    struct edit *edit;          /* owned; NULL: `what` is done to them */
    struct edit_filter *filter; /* owned: of the next piece of an edit; NULL: nothing is to be asked */
    bool one;                   /* it was asked for one job, by its number */
    bool may;                   /* the caller may change others' jobs */
    uint64_t *ids;              /* owned; in the order in which they are changed */
    size_t count, capacity, done;
    json_t *changed, *refused;
    struct change *next, *prev;
};

struct changes {
    struct daemon *daemon;
    struct change *running; /* the first has the next turn */
    struct change *asking;  /* of these; NULL: none waits for the filter */
    uv_idle_t *idle;
};

int change_find(const char *name)
{
    for (size_t i = 0; i < array_size(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void change_free(struct change *change)
{
    edit_free(change->edit);
    edit_filter_free(change->filter);
    json_decref(change->changed);
    json_decref(change->refused);
    free(change->ids);
    free(change);
}

static void refuse(struct change *change, uint64_t job, const char *why)
{
    json_array_append_new(change->refused, json_pack("{s:I, s:s}", "id", (json_int_t)job, "error", why));
}

static json_t *state_of(const struct job_view *view)
{
    return json_pack("{s:I, s:s}", "id", (json_int_t)view->id, "state", job_state_name(view->state));
}

/* 200, or the answer's status and why. */
static int change_next(const struct change *change, uint64_t job, json_t **state, struct error *err)
{
    struct daemon *daemon = change->changes->daemon;
    struct job_view *view = views_find(&daemon->views, job);
    char number[JOB_NUMBER_TEXT];
    int status;

    if (!view)
        return error_set(err, ENOENT, "there is no job '%" PRIu64 "'", job), 404;
    if (view->wants->uid != change->request->uid && !change->may)
        return error_set(err, EPERM, "job %s belongs to %s", job_number(&daemon->views, job, number),
                         job_view_user(view)),
               403;
    if (change->edit && edit_needs_admin(change->edit) && !change->may)
        return error_set(err, EPERM, "a priority above 0 is for administrators: say 0 or below"), 403;
    status = change->edit ? edit_filter_job(change->filter, daemon, change->request->uid, view, change->edit, err)
                          : actions_change_one(daemon, change->request->uid, view, &change->what, err);
    if (status == 200)
        *state = state_of(view);
    return status;
}

#define OTHERWISE "it takes effect once that works, unless carmad ends before"

static void finish_one(struct change *change)
{
    struct daemon *daemon = change->changes->daemon;
    json_t *state = NULL;
    struct error err;
    int status = change_next(change, change->ids[0], &state, &err);

    if (status == 200) {
        actions_reply_once_stored(daemon, change->request, 200, state, OTHERWISE);
        engine_turn(daemon->engine);
    } else {
        http_reply_error(change->request, status, "%s", err.text);
    }
    change_free(change);
}

static void finish_many(struct change *change)
{
    json_t *answer = json_pack("{s:O, s:O}", "jobs", change->changed, "refused", change->refused);

    if (json_array_size(change->changed) > 0)
        actions_reply_once_stored(change->changes->daemon, change->request, 200, answer, OTHERWISE);
    else /* also where nothing can be stored */
        http_reply(change->request, 200, answer);
    change_free(change);
}

static size_t piece_of(const struct change *change)
{
    return change->count - change->done < PIECE ? change->count - change->done : PIECE;
}

static void on_piece(uv_idle_t *idle);

static void on_filtered(void *user)
{
    struct change *change = user;

    change->changes->asking = NULL;
    uv_idle_start(change->changes->idle, on_piece);
}

/* Whether its next piece has still to come by the filter, which one edit asks at a time: it is asked now if it can be.
 */
static bool waits_for_filter(struct change *change)
{
    struct changes *changes = change->changes;

    if (!change->edit)
        return false;
    if (changes->asking || change->filter)
        return changes->asking == change || !change->filter;
    change->filter = edit_filter_start(changes->daemon, change->request->uid, change->ids + change->done,
                                       piece_of(change), change->edit, on_filtered, change);
    changes->asking = edit_filter_runs(change->filter) ? change : NULL;
    return changes->asking;
}

static struct change *next_turn(const struct changes *changes)
{
    struct change *change;

    DL_FOREACH (changes->running, change)
        if (!waits_for_filter(change))
            return change;
    return NULL;
}

static void on_piece(uv_idle_t *idle)
{
    struct changes *changes = idle->data;
    struct change *change = next_turn(changes);
    json_t *state;
    struct error err;

    if (!change) {
        uv_idle_stop(idle);
        return;
    }
    DL_DELETE(changes->running, change);
    for (size_t i = 0, count = piece_of(change); i < count; i++) {
        uint64_t job = change->ids[change->done++];
        if (change_next(change, job, &state, &err) == 200)
            json_array_append_new(change->changed, state);
        else
            refuse(change, job, err.text);
    }
    edit_filter_free(change->filter);
    change->filter = NULL;
    if (change->done < change->count)
        DL_APPEND(changes->running, change);
    else
        finish_many(change);
    engine_turn(changes->daemon->engine);
}

static void on_may(int status, void *user)
{
    struct change *change = user;
    struct changes *changes = change->changes; /* gone with -ESHUTDOWN */

    change->may = status == 0;
    if (status == -ESHUTDOWN) {
        http_reply_stopping(change->request);
        change_free(change);
    } else if (change->one) {
        finish_one(change);
    } else {
        DL_APPEND(changes->running, change);
        uv_idle_start(changes->idle, on_piece);
    }
}

static struct change *change_new(struct changes *changes, struct http_request *request, struct record what)
{
    struct change *change = xcalloc(1, sizeof *change);

    *change = (struct change){
        .changes = changes, .request = request, .what = what, .changed = json_array(), .refused = json_array()};
    return change;
}

static void add(struct change *change, uint64_t job)
{
    array_reserve(change->ids, change->capacity, change->count + 1);
    change->ids[change->count++] = job;
}

/* `other`: of one of the jobs, the owner, where that is not the caller. */
static void begin(struct change *change, uid_t other)
{
    if (change->edit && edit_needs_admin(change->edit))
        other = (uid_t)-1; /* nobody's: for administrators alone */
    access_ask(change->changes->daemon->access, change->request->uid, other, on_may, change);
}

static void change_one(struct changes *changes, struct http_request *request, const struct job_view *view,
                       struct record what)
{
    struct change *change = change_new(changes, request, what);

    change->one = true;
    add(change, view->id);
    begin(change, view->wants->uid);
}

/* The record of the verb, with what the request's body says. False: it is answered that this is not known. */
static bool read_verb(struct http_request *request, int verb, struct record *what)
{
    struct json_bounds bounds = {.values = 16, .depth = 2, .bytes = HTTP_SMALL_BODY_BYTES};
    json_t *body = NULL;
    struct error err;
    const char *text;
    int rc;

    *what = verbs[verb].what;
    if (!verbs[verb].read)
        return true;
    rc = json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, &err);
    text = json_string_value(json_object_get(body, "signal"));
    if (rc == 0)
        rc = text && json_object_size(body) == 1 ? verbs[verb].read(text, &what->commanded.argument, &err)
                                                 : error_set(&err, EINVAL, "{\"signal\": \"USR1\"} is expected");
    json_decref(body);
    if (rc)
        http_reply_error(request, 400, "%s", err.text);
    return rc == 0;
}

void change_job(struct changes *changes, struct http_request *request, const struct job_view *view, int verb)
{
    struct record what;

    if (read_verb(request, verb, &what))
        change_one(changes, request, view, what);
}

void change_place(struct changes *changes, struct http_request *request, const struct job_view *view)
{
    static const char *const to[] = {[ORDERED_FIRST] = "first", [ORDERED_LAST] = "last", [ORDERED_BEFORE] = "before"};
    const char *where = http_query(request, "to"), *before = http_query(request, "before");
    struct record what = {.type = RECORD_ORDERED};

    while (where && what.ordered.where < array_size(to) && strcmp(where, to[what.ordered.where]) != 0)
        what.ordered.where++;
    if (!where || what.ordered.where == array_size(to))
        http_reply_error(request, 400, "to '%.40s' is not known: say first, last or before", where ? where : "");
    else if ((what.ordered.where == ORDERED_BEFORE) != (before != NULL))
        http_reply_error(request, 400, "before is the job of to=before, and of that alone");
    else if (!requests_read_number(before, 18, 0, &what.ordered.before))
        http_reply_error(request, 400, "before '%.40s' is not a job's number", before);
    else if (!requests_read_number(http_query(request, "last"), 18, view->id, &what.ordered.last))
        http_reply_error(request, 400, "last '%.40s' is not a job's number", http_query(request, "last"));
    else
        change_one(changes, request, view, what);
}

/* The job of an array that the word names alone; NULL: it names several, or it is gone. */
static const struct job_view *named_of_array(const struct selected_ids *ids, const struct views *views)
{
    const struct job_view *view = views_find(views, ids->first);
    struct array_words all;
    int64_t position;

    if (!ids->indices || ids->indices->jobs != 1 || !view || !job_view_array_words(view, &all))
        return NULL;
    position = array_position(&all, array_index(ids->indices, 0));
    return position >= 0 ? views_find(views, ids->first + (uint64_t)position) : NULL;
}

/* A word that names no job that can be changed. */
static void tell_vain(struct change *change, const struct selected_ids *ids, const struct views *views)
{
    const struct job_view *view = views_find(views, ids->first), *one = named_of_array(ids, views);
    CLEANUP(free_ptr) char *why = NULL;
    struct error err;

    if (ids->is_range && ids->last > ids->first)
        why = xasprintf("no job of %s is among those that were asked for", ids->text);
    else if (one && job_state_ended(one->state))
        actions_ended(one, &change->what, &err);
    else if (ids->indices || ids->last > ids->first)
        why = xasprintf("all jobs of array %s have ended, or are not among those that were asked for", ids->text);
    else if (!view || !job_view_is_shown(view))
        why = xasprintf("there is no job '%" PRIu64 "'", ids->first);
    else if (job_state_ended(view->state))
        actions_ended(view, &change->what, &err);
    else
        why = xasprintf("job %" PRIu64 " is not among those that were asked for", view->id);
    refuse(change, one ? one->id : ids->first, why ? why : err.text);
}

/* The owner of one that is another's, or the caller. */
static uid_t choose(struct change *change, struct selection *selection)
{
    const struct views *views = &change->changes->daemon->views;
    const struct job_view *view = selection_begin(selection, views);
    uid_t caller = change->request->uid, other = caller;

    for (; view && (!selection->ids || view->id <= selection->most_id); view = view->hh.next)
        if (selection_has(selection, view)) {
            add(change, view->id);
            other = view->wants->uid != caller ? view->wants->uid : other;
        }
    for (size_t i = 0; i < selection->id_count; i++)
        if (!selection->ids[i].found)
            tell_vain(change, &selection->ids[i], views);
    return other;
}

static void turn_round(struct change *change)
{
    for (size_t i = 0, k = change->count; i + 1 < k; i++) {
        uint64_t job = change->ids[i];
        change->ids[i] = change->ids[--k];
        change->ids[k] = job;
    }
}

/* `edit` is taken over; NULL: `what` is done. */
static void change_selected(struct changes *changes, struct http_request *request, struct record what,
                            enum change_order order, struct edit *edit)
{
    struct selection selection;
    struct change *change;
    uid_t other;

    if (!selection_read(changes->daemon, request, selection_states_unfinished(), &selection)) {
        edit_free(edit);
        return;
    }
    if (selection_is_all(&selection)) {
        http_reply_error(request, 400,
                         "which jobs? say ids=, state=, user= or name=: without one it would be all of yours");
        selection_release(&selection);
        edit_free(edit);
        return;
    }
    if (!selection.ids && !selection.user && selection.uid == UINT64_MAX)
        selection.uid = request->uid;
    change = change_new(changes, request, what);
    change->edit = edit;
    other = choose(change, &selection);
    selection_release(&selection);
    if (!http_query(request, "dry_run")) {
        if (order == LAST_FIRST)
            turn_round(change);
        begin(change, other);
        return;
    }
    for (size_t i = 0; i < change->count; i++)
        json_array_append_new(change->changed, state_of(views_find(&changes->daemon->views, change->ids[i])));
    http_reply(request, 200, json_pack("{s:O, s:O}", "jobs", change->changed, "refused", change->refused));
    change_free(change);
}

void change_many(struct changes *changes, struct http_request *request, int verb)
{
    struct record what;

    if (read_verb(request, verb, &what))
        change_selected(changes, request, what, verbs[verb].order, NULL);
}

void change_edit(struct changes *changes, struct http_request *request)
{
    struct edit *edit = edit_read(request);

    if (edit)
        change_selected(changes, request, (struct record){0}, FIRST_FIRST, edit);
}

struct changes *changes_new(struct daemon *daemon)
{
    struct changes *changes = xcalloc(1, sizeof *changes);

    changes->daemon = daemon;
    changes->idle = xmalloc(sizeof *changes->idle);
    uv_idle_init(daemon->loop, changes->idle);
    changes->idle->data = changes;
    return changes;
}

void changes_free(struct changes *changes)
{
    struct change *change, *next;

    if (!changes)
        return;
    DL_FOREACH_SAFE (changes->running, change, next) {
        if (change->done)
            http_reply_error(change->request, 503, "carmad stops: of %zu jobs %zu are done; ask again for the others",
                             change->count, change->done);
        else
            http_reply_stopping(change->request);
        change_free(change);
    }
    uv_close((uv_handle_t *)changes->idle, free_handle);
    free(changes);
}
