#include "daemon/capture/captures.h"

#include <string.h>
#include <utlist.h>

#include "api/spec.h"
#include "base/handle.h"
#include "base/install.h"
#include "base/memory.h"
#include "daemon/capture/ask.h"
#include "daemon/capture/cache.h"
#include "daemon/capture/may_be_python.h"
#include "daemon/capture/result.h"
#include "daemon/log.h"
#include "daemon/low_child.h"

#define BEGIN_WALL_MS 100 /* after a submission: its answer and its job's start go first */
#define CHECK_S       60

struct due {
    uint64_t job, since_ns; /* by uv_hrtime() */
};

/* A user with captures that are due; those that wait longest for a turn come first. */
struct capturing_user {
    uid_t uid;
    struct due *due; /* owned: in the order of submission, from `first` on */
    size_t first, count, capacity;
    bool busy;                          /* one of them is under way */
    uint64_t last_key, last_checked_ns; /* the last whose files were checked: equal jobs of before have its answer */
    struct capturing_user *prev, *next;
};

struct running {
    struct captures *captures;
    struct capturing_user *user; /* borrowed */
    struct recording *recording;
    uint64_t job, key, began_ns;
    bool fresh;
    struct running *prev, *next;
};

struct captures {
    struct daemon *daemon;
    char *program;
    struct low_child *check;
    bool checked;
    char *missing; /* owned: why there is no sandbox; NULL: there is one, or that is not known yet */
    uv_timer_t *begin;
    struct capturing_user *users;
    struct running *running;
    uint32_t running_count;
    uint64_t counts[CAPTURE_OUTCOMES];
    bool stopping;
};

const char *capture_outcome_name(uint32_t outcome)
{
    static const char *const names[CAPTURE_OUTCOMES] = {"estimated", "nothing", "failed", "dropped", "reused"};

    return names[outcome];
}

uint64_t captures_count(const struct captures *captures, uint32_t outcome)
{
    return captures->counts[outcome];
}

static void captures_free_at_last(struct captures *captures)
{
    struct capturing_user *user, *next;

    if (captures->running)
        return; /* a thread still estimates */
    DL_FOREACH_SAFE (captures->users, user, next) {
        free(user->due);
        free(user);
    }
    free(captures->program);
    free(captures->missing);
    free(captures);
}

/* ---- One at a time of a user ---- */

/* Nothing is known of its memory, and it may be tried. */
static bool needs_one(const struct captures *captures, const struct job_view *view)
{
    const struct job *job = view ? core_find_job(captures->daemon->core, view->id) : NULL;
    uint32_t source;

    if (!job || view->unreadable || view->common->spec->no_capture || job->wants->request_bytes >= 0 ||
        job->wants->gpus == 0 || view->common->spec->container)
        return false;
    core_reservation(captures->daemon->core, job, &source);
    return source != SOURCE_LEARNED && source != SOURCE_OBSERVED && source != SOURCE_RAISED;
}

static bool is_wanted(const struct captures *captures, const struct job_view *view)
{
    if (!needs_one(captures, view))
        return false;
    const struct job_spec spec = job_view_spec(view);
    return job_spec_asks_for_capture(&spec) || (!captures->missing && may_be_python(&spec));
}

char *captures_untried(const struct captures *captures, const struct job_view *view)
{
    const struct job_estimate *estimate = &view->common->estimate;

    if (!needs_one(captures, view) || estimate->bytes >= 0 || estimate->warnings.count)
        return NULL;
    const struct job_spec spec = job_view_spec(view);
    if (!may_be_python(&spec))
        return job_spec_asks_for_capture(&spec)
                   ? NULL
                   : xstrdup("its command does not look like Python: --capture auto tries it");
    if (!captures->program)
        return xstrdup(captures->daemon->config.auto_capture == AUTO_CAPTURE_ON
                           ? "the estimator in use takes no captures"
                           : "the setting auto_capture is off");
    if (!captures->missing || job_spec_asks_for_capture(&spec))
        return NULL;
    return xasprintf("%s; --capture auto tries it without a sandbox", captures->missing);
}

static void start_due(struct captures *captures);

static void on_ended(uint32_t outcome, void *user)
{
    struct running *running = user;
    struct captures *captures = running->captures;

    captures->counts[outcome]++;
    running->user->busy = false;
    if (outcome != CAPTURE_DROPPED && !running->fresh) {
        running->user->last_key = running->key;
        running->user->last_checked_ns = running->began_ns;
    }
    DL_DELETE(captures->running, running);
    captures->running_count--;
    if (captures->stopping) {
        captures_free_at_last(captures);
    } else {
        result_show_estimating(captures->daemon, running->job, false);
        start_due(captures);
    }
    free(running);
}

static void start(struct captures *captures, struct capturing_user *user, const struct due *due,
                  const struct job_view *view)
{
    struct running *running = xcalloc(1, sizeof *running);
    const struct job_spec spec = job_view_spec(view);
    uint64_t key = capture_cache_key(&spec);

    *running = (struct running){.captures = captures,
                                .user = user,
                                .job = view->id,
                                .key = key,
                                .began_ns = uv_hrtime(),
                                .fresh = user->last_key == key && due->since_ns <= user->last_checked_ns};
    running->recording = recording_new(captures->daemon, captures->program, captures->missing, view, key,
                                       running->fresh, on_ended, running);
    user->busy = true;
    DL_APPEND(captures->running, running);
    captures->running_count++;
    result_show_estimating(captures->daemon, view->id, true);
}

/* The user's next job that is still to be captured; NULL: none. */
static const struct job_view *next_of(const struct captures *captures, struct capturing_user *user, struct due *due)
{
    while (user->first < user->count) {
        *due = user->due[user->first++];
        const struct job_view *view = views_find(&captures->daemon->views, due->job);
        if (is_wanted(captures, view))
            return view;
    }
    user->first = user->count = 0;
    return NULL;
}

static bool start_one(struct captures *captures)
{
    const struct job_view *view = NULL;
    struct capturing_user *user;
    struct due due;

    DL_FOREACH (captures->users, user)
        if (!user->busy && (view = next_of(captures, user, &due)))
            break;
    if (!view)
        return false;
    DL_DELETE(captures->users, user); /* round robin */
    DL_APPEND(captures->users, user);
    start(captures, user, &due, view);
    return true;
}

static void start_due(struct captures *captures)
{
    while (captures->checked && captures->running_count < CAPTURES_MOST && start_one(captures))
        ;
}

static void on_begin(uv_timer_t *timer)
{
    start_due(timer->data);
}

static struct capturing_user *user_of(struct captures *captures, uid_t uid)
{
    struct capturing_user *user;

    DL_FOREACH (captures->users, user)
        if (user->uid == uid)
            return user;
    user = xcalloc(1, sizeof *user);
    user->uid = uid;
    DL_PREPEND(captures->users, user); /* it never had a turn */
    return user;
}

void captures_consider(struct captures *captures, uint64_t job)
{
    const struct job_view *view = views_find(&captures->daemon->views, job);
    struct capturing_user *user;

    if (!captures->program || !is_wanted(captures, view))
        return;
    user = user_of(captures, view->wants->uid);
    if (user->first > user->count / 2) { /* of a user who is never without one the list would only grow */
        user->count -= user->first;
        memmove(user->due, user->due + user->first, user->count * sizeof *user->due);
        user->first = 0;
    }
    array_reserve(user->due, user->capacity, user->count + 1);
    user->due[user->count++] = (struct due){.job = job, .since_ns = uv_hrtime()};
    if (!uv_is_active((uv_handle_t *)captures->begin))
        uv_timer_start(captures->begin, on_begin, BEGIN_WALL_MS, 0);
}

void captures_drop(struct captures *captures, uint64_t job)
{
    struct running *running;

    DL_FOREACH (captures->running, running)
        if (running->job == job)
            break;
    if (running)
        recording_drop(running->recording);
}

void captures_resume(struct captures *captures)
{
    for (const struct job_view *view = captures->daemon->views.jobs; view; view = view->hh.next)
        if ((view->state == JOB_QUEUED || view->state == JOB_HELD) && !result_was_none(view))
            captures_consider(captures, view->id);
}

/* ---- From begin to end ---- */

static void on_checked(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct captures *captures = user;

    captures->check = NULL;
    captures->checked = true;
    if (rc != 0) {
        daemon_log("no automatic captures but by --capture auto: %s", err->text);
        captures->missing = xstrdup(err->text);
    }
    start_due(captures);
}

struct captures *captures_new(struct daemon *daemon)
{
    static const struct low_child_limits limits = {.what = "sandbox",
                                                   .too_long = "nothing is captured",
                                                   .too_large = "nothing is captured",
                                                   .time_s = CHECK_S,
                                                   .memory_bytes = CAPTURE_MEMORY_BYTES,
                                                   .output_bytes = 4096};
    struct captures *captures = xcalloc(1, sizeof *captures);
    char option[] = "--check";
    struct error err;

    captures->daemon = daemon;
    capture_cache_prune(daemon->config.state_directory);
    captures->begin = xmalloc(sizeof *captures->begin);
    uv_timer_init(daemon->loop, captures->begin);
    captures->begin->data = captures;
    if (daemon->config.auto_capture == AUTO_CAPTURE_ON && estimator_computes(daemon->config.estimator)) {
        captures->program = install_path("lib/carma/carma-sandbox");
        char *argv[] = {captures->program, option, NULL};
        if (low_child_start(daemon->loop, argv, NULL, &limits, on_checked, captures, &captures->check, &err) != 0) {
            daemon_log("no automatic captures: %s", err.text);
            free_ptr(&captures->program);
        }
    }
    return captures;
}

void captures_free(struct captures *captures)
{
    struct running *running, *next;

    if (!captures)
        return;
    captures->stopping = true;
    low_child_free(captures->check);
    uv_close((uv_handle_t *)captures->begin, free_handle);
    if (!captures->running)
        captures_free_at_last(captures);
    else
        DL_FOREACH_SAFE (captures->running, running, next)
            recording_drop(running->recording); /* with the last one's end all is freed */
}
