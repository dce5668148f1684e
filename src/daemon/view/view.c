#include "daemon/view/view.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "daemon/view/owners.h"

const struct job_view_run view_never_ran = {
    .unused_since_ns = -1,
#define VIEW(part, type, member, first, form) IF_RUN_##part(.member = first, )
#include "daemon/view/view_fields.def"
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) IF_RUN_##part(.member = absent, )
#include "core/job_state.def"
};

struct job_view_run *job_view_run(struct job_view *view)
{
    struct job_view_run *run;

    if (view->run != &view_never_ran)
        return (struct job_view_run *)view->run;
    run = xmalloc(sizeof *run);
    *run = view_never_ran;
    view->run = run;
    return run;
}

void job_view_run_free(struct job_view *view)
{
    if (view->run == &view_never_ran)
        return;
    free(view->run->progress);
    free((struct job_view_run *)view->run);
    view->run = &view_never_ran;
}

static void job_view_free(struct job_view *view)
{
    job_view_forget_inputs(view);
    job_view_set_stored(view, 0);
    common_texts_leave(&view->views->texts, view->name);
    common_texts_leave(&view->views->texts, view->command);
    common_texts_leave(&view->views->texts, view->user);
    common_specs_leave(&view->views->specs, view->common);
    common_wants_leave(&view->views->wants, view->wants);
    common_texts_leave(&view->views->texts, view->workload);
    free(view->placements);
    free(view->message);
    free(view->unreadable);
    job_view_run_free(view);
    free(view);
}

void views_release(struct views *views)
{
    struct job_view *view, *next;

    HASH_ITER (hh, views->jobs, view, next) {
        HASH_DEL(views->jobs, view);
        job_view_free(view);
    }
    common_wants_leave(&views->wants, views->no_wants);
    views->no_wants = NULL;
}

static void leave_order(struct views *views, struct job_view *view)
{
    if (view->later)
        view->later->earlier = view->earlier;
    else if (views->latest == view)
        views->latest = view->earlier;
    if (view->earlier)
        view->earlier->later = view->later;
    view->earlier = view->later = NULL;
}

void views_touch(struct views *views, struct job_view *view)
{
    leave_order(views, view);
    view->version = ++views->version;
    view->earlier = views->latest;
    if (views->latest)
        views->latest->later = view;
    views->latest = view;
}

void views_loaded(struct views *views, struct job_view *view)
{
    views->counts[view->state]++;
    views_touch(views, view);
}

struct job_view *views_find(const struct views *views, uint64_t id)
{
    struct job_view *view;

    HASH_FIND(hh, views->jobs, &id, sizeof id, view);
    return view;
}

static struct job_view *add(struct views *views, uint64_t id)
{
    struct job_view *view = xcalloc(1, sizeof *view);

    view->id = id;
    view->state = JOB_STATE_COUNT;
    view->views = views;
    view->gid = OWNER_UNKNOWN;
    if (!views->no_wants)
        views->no_wants = common_wants_join(&views->wants, &(struct record_submitted){0});
    job_view_set_wants(view, views->no_wants);
#define VIEW(part, type, member, first, form) IF_JOB_##part(view->member = first;)
#include "daemon/view/view_fields.def"
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) IF_JOB_##part(view->member = absent;)
#include "core/job_state.def"
    view->run = &view_never_ran;
    HASH_ADD(hh, views->jobs, id, sizeof view->id, view);
    if (id > views->last_id)
        views->last_id = id;
    return view;
}

struct job_view *views_add(struct views *views, uint64_t id, struct job_spec *spec, struct job_estimate *estimate)
{
    struct job_view *view = add(views, id);

    job_view_take_spec(view, spec, estimate);
    return view;
}

struct job_view *views_add_like(struct views *views, uint64_t id, const struct job_view *earlier)
{
    struct job_view *view = add(views, id);

    job_view_share_spec(view, earlier);
    view->user = common_texts_share(earlier->user);
    view->gid = earlier->gid;
    return view;
}

bool job_view_is_shown(const struct job_view *view)
{
    return view->state < JOB_STATE_COUNT && !view->hidden;
}

void views_show(struct views *views, struct job_view *view)
{
    view->hidden = false;
    views->counts[view->state]++;
    views_touch(views, view);
}

void views_remove(struct views *views, struct job_view *view)
{
    HASH_DEL(views->jobs, view);
    leave_order(views, view);
    if (job_view_is_shown(view))
        views->counts[view->state]--;
    job_view_free(view);
}

void views_hide(struct views *views, struct job_view *view)
{
    if (job_view_is_shown(view))
        views->counts[view->state]--;
    view->state = JOB_STATE_COUNT;
    leave_order(views, view);
}

void job_view_set_message(struct job_view *view, const char *message)
{
    free(view->message);
    view->message = message && *message ? xstrdup(message) : NULL;
    if (view->message)
        printable_replace(view->message); /* a store of 0.2 has raw ones */
}

void job_view_set_environment(struct job_view *view, const struct spec_strings *environment)
{
    view->environment = common_texts_join(&view->views->texts, environment);
    job_view_charge_held(view);
}

void job_view_set_wants(struct job_view *view, const struct record_submitted *wants)
{
    const struct record_submitted *common = common_wants_join(&view->views->wants, wants);

    if (view->wants)
        job_view_move_stored(view, view->wants->uid, common->uid);
    common_wants_leave(&view->views->wants, view->wants);
    common_texts_leave(&view->views->texts, view->workload);
    view->wants = common;
    view->workload = common_texts_join_one(&view->views->texts, *wants->workload ? wants->workload : NULL);
    job_view_charge_held(view);
}

struct record_submitted job_view_wants(const struct job_view *view)
{
    struct record_submitted wants = *view->wants;

    snprintf(wants.workload, sizeof wants.workload, "%s", job_view_workload(view));
    return wants;
}

void job_view_set_user(struct job_view *view, const char *user)
{
    struct common_text *text = common_texts_join_one(&view->views->texts, user);

    common_texts_leave(&view->views->texts, view->user);
    view->user = text;
}

const char *job_view_user(const struct job_view *view)
{
    return common_text_first(view->user);
}

const char *job_view_workload(const struct job_view *view)
{
    return view->workload ? common_text_first(view->workload) : "";
}

void job_view_forget_inputs(struct job_view *view)
{
    const struct spec_strings environment = common_text_list(view->environment);

    job_view_drop_stored(view, &environment);
    common_texts_leave(&view->views->texts, view->environment);
    common_texts_leave(&view->views->texts, view->script);
    view->environment = view->script = NULL;
}

/* ---- Those to be forgotten ---- */

struct ended_of {
    uint32_t uid;
    size_t count; /* that are not older than is kept anyway; then, how many of these go */
    UT_hash_handle hh;
};

static struct ended_of *ended_of(struct ended_of **users, uint32_t uid)
{
    struct ended_of *user;

    HASH_FIND(hh, *users, &uid, sizeof uid, user);
    if (!user) {
        user = xcalloc(1, sizeof *user);
        user->uid = uid;
        HASH_ADD(hh, *users, uid, sizeof user->uid, user);
    }
    return user;
}

/* The largest number that each user may have, so that all of them together have at most `most`. */
static size_t share_of_each(const struct ended_of *users, size_t most)
{
    size_t low = 0, high = most;

    while (low < high) {
        size_t share = low + (high - low + 1) / 2, sum = 0;

        for (const struct ended_of *user = users; user; user = user->hh.next)
            sum += user->count < share ? user->count : share;
        if (sum <= most)
            low = share;
        else
            high = share - 1;
    }
    return low;
}

uint64_t *views_surplus(const struct views *views, size_t most, int64_t before_ns, size_t *count)
{
    struct ended_of *users = NULL, *user, *next;
    uint64_t *ids = NULL;
    size_t capacity = 0, share;

    *count = 0;
    for (const struct job_view *view = views->jobs; view; view = view->hh.next)
        if (job_state_ended(view->state) && view->ended_ns >= before_ns)
            ended_of(&users, view->wants->uid)->count++;
    share = share_of_each(users, most);
    for (user = users; user; user = user->hh.next)
        user->count -= user->count < share ? user->count : share;
    for (const struct job_view *view = views->jobs; view; view = view->hh.next) {
        if (!job_state_ended(view->state))
            continue;
        if (view->ended_ns >= before_ns) {
            user = ended_of(&users, view->wants->uid);
            if (user->count == 0)
                continue;
            user->count--;
        }
        if (job_view_is_changed(view))
            continue;
        array_reserve(ids, capacity, *count + 1);
        ids[(*count)++] = view->id;
    }
    HASH_ITER (hh, users, user, next) {
        HASH_DEL(users, user);
        free(user);
    }
    return ids;
}
