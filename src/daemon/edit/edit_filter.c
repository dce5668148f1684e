/* How this file works: edit_filter_start() makes a copy of each job as it would be, and keeps their numbers in that
 * order. on_ended() keeps what the filter has said of each, by its number. edit_filter_job() edits a job with that. One
 * that could not be edited when the filter was asked, and could be now, is refused: nothing passes by accident. */
#include "daemon/edit/edit_filter.h"

#include <errno.h>
#include <inttypes.h>

#include "base/memory.h"
#include "daemon/submit/filter.h"

struct edit_filter {
    struct daemon *daemon;
    struct low_child *child;
    uint64_t *asked; /* owned: the jobs that it sees, in its order */
    size_t count;
    json_t *changes; /* owned: what it says of them; NULL: nothing */
    int status;      /* 200, or the answer's for all of them, for the reason in err */
    struct error err;
    void (*ended)(void *user);
    void *user;
};

static void fail(struct edit_filter *filter, const char *why)
{
    filter->status = filter_failed(filter->daemon, "changed", why, &filter->err);
}

static void take(struct edit_filter *filter, const char *output)
{
    CLEANUP(free_ptr) char *refusal = NULL;
    struct error err;

    if (filter_read(output, filter->count, &refusal, &filter->changes, &err))
        fail(filter, err.text);
    else if (refusal)
        filter->status = filter_refused(refusal, &filter->err);
}

static void on_ended(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct edit_filter *filter = user;
    CLEANUP(free_ptr) char *text = rc ? NULL : xstrndup(output, length);

    filter->child = NULL;
    if (rc)
        fail(filter, err->text);
    else
        take(filter, text);
    filter->ended(filter->user);
}

struct edit_filter *edit_filter_start(struct daemon *daemon, uid_t uid, const uint64_t *ids, size_t count,
                                      const struct edit *edit, void (*ended)(void *user), void *user)
{
    CLEANUP(free_ptr) char *input = NULL;
    struct edit_filter *filter;
    const char *name = NULL;
    struct error err;
    json_t *jobs;

    if (!daemon->config.submit_filter)
        return NULL;
    filter = xcalloc(1, sizeof *filter);
    *filter = (struct edit_filter){.daemon = daemon, .status = 200, .ended = ended, .user = user};
    filter->asked = xcalloc(count, sizeof *filter->asked);
    jobs = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct job_view *view = views_find(&daemon->views, ids[i]);
        json_t *job = view && view->wants->uid == uid ? edit_preview(view, edit) : NULL;
        if (!job)
            continue;
        json_array_append_new(jobs, job);
        filter->asked[filter->count++] = view->id;
        name = job_view_user(view);
    }
    input = filter_input(uid, name, true, jobs);
    if (filter->count == 0) {
        edit_filter_free(filter);
        return NULL;
    }
    if (filter_start(daemon, input, on_ended, filter, &filter->child, &err))
        fail(filter, err.text);
    return filter;
}

bool edit_filter_runs(const struct edit_filter *filter)
{
    return filter && filter->child;
}

void edit_filter_free(struct edit_filter *filter)
{
    if (!filter)
        return;
    low_child_free(filter->child);
    json_decref(filter->changes);
    free(filter->asked);
    free(filter);
}

/* What the filter says of the job; NULL: it has not seen it. */
static const json_t *said_of(const struct edit_filter *filter, uint64_t job)
{
    for (size_t i = 0; i < filter->count; i++)
        if (filter->asked[i] == job)
            return filter->changes ? json_array_get(filter->changes, i) : json_null();
    return NULL;
}

int edit_filter_job(const struct edit_filter *filter, struct daemon *daemon, uid_t uid, struct job_view *view,
                    const struct edit *edit, struct error *err)
{
    bool sees = daemon->config.submit_filter && view->wants->uid == uid && edit_may(view, err) == 200;
    const json_t *said = sees && filter ? said_of(filter, view->id) : NULL;
    char number[JOB_NUMBER_TEXT];
    struct edit *both;
    int status;

    if (!sees)
        return edit_job(daemon, uid, view, edit, err);
    if (!said)
        return error_set(err, EAGAIN, "job %s changed meanwhile: ask again", job_number(view->views, view->id, number)),
               409;
    if (filter->status != 200) {
        *err = filter->err;
        return filter->status;
    }
    both = edit_with(edit, said);
    status = edit_job(daemon, uid, view, both, err);
    if (status != 200 && json_is_object(said))
        error_prefix(err, "with what the administrator's filter adds");
    edit_free(both);
    return status;
}
