#include "daemon/capture/captures.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "api/submission_text.h"
#include "base/handle.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/capture/answer.h"
#include "daemon/capture/ask.h"
#include "daemon/capture/looks.h"
#include "daemon/engine/engine.h"
#include "daemon/fit.h"
#include "daemon/log.h"
#include "daemon/low_child.h"
#include "daemon/node/node.h"

#define BEGIN_WALL_MS  100 /* after a submission, whose answer and start go first */
#define BACKSTOP_S     30  /* for the sandbox itself, which has limits of its own */
#define CHECK_S        60
#define REASON_NO_AUTO "no automatic capture"

/* A user with captures that are due; those that wait longest for a turn come first. */
struct capturing_user {
    uid_t uid;
    uint64_t *jobs; /* owned: in the order of submission, from `first` on */
    size_t first, count, capacity;
    bool busy; /* one of them is under way */
    struct capturing_user *prev, *next;
};

/* One that runs, or whose answer is being estimated from. */
struct recording {
    struct captures *captures;
    uint64_t job;
    bool dropped;
    struct capturing_user *user; /* borrowed */
    struct low_child *child;     /* NULL: it has ended */
    uv_work_t work;
    /* The thread's input and result. */
    struct job_spec spec; /* what an estimate needs of it: owned */
    const struct estimator *estimator;
    struct machine_profile profile;
    int32_t quantile_permille;
    char *output; /* owned */
    size_t length;
    struct job_estimate estimate;
    struct error err;
    int rc;
    struct recording *prev, *next;
};

struct captures {
    struct daemon *daemon;
    char *program;
    struct low_child *check;
    bool can;      /* the sandbox can be had */
    bool starting; /* start_due() is under way */
    uv_timer_t *begin;
    struct capturing_user *users;
    struct recording *running;
    uint32_t running_count;
    uint64_t counts[CAPTURE_OUTCOMES];
    bool stopping;
};

const char *capture_outcome_name(uint32_t outcome)
{
    static const char *const names[CAPTURE_OUTCOMES] = {"estimated", "nothing", "failed", "dropped"};

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
        free(user->jobs);
        free(user);
    }
    free(captures->program);
    free(captures);
}

/* ---- The result ---- */

static void show_estimating(struct daemon *daemon, uint64_t job, bool estimating)
{
    struct job_view *view = views_find(&daemon->views, job);

    if (!view || view->estimating == estimating)
        return;
    view->estimating = estimating;
    views_touch(&daemon->views, view);
}

/* Shown, and stored with the current turn. Takes over the estimate. */
static void keep_estimate(struct daemon *daemon, struct job_view *view, struct job_estimate *estimate)
{
    const struct job_spec spec = job_view_spec(view);
    struct owner owner = {.user = (char *)view->user, .gid = view->gid};

    engine_store_spec(daemon->engine, view->id, submission_to_text(&spec, estimate, &owner));
    job_view_set_estimate(view, estimate);
}

/* Its bytes may be anything; it is shown and stored as JSON. */
static void make_utf8(struct error *err)
{
    json_t *json = json_string(err->text);

    for (char *c = err->text; *c && !json; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    json_decref(json);
}

static void say_why_not(struct daemon *daemon, struct job_view *view, struct error *err)
{
    const struct spec_strings *before = &view->common->estimate.warnings;
    struct job_estimate estimate;

    make_utf8(err);
    error_prefix(err, REASON_NO_AUTO);
    daemon_log("job %" PRIu64 ": %s", view->id, err->text);
    job_estimate_init(&estimate);
    for (size_t i = 0; i < before->count; i++)
        spec_strings_add(&estimate.warnings, before->items[i]);
    spec_strings_add(&estimate.warnings, err->text);
    keep_estimate(daemon, view, &estimate);
    engine_turn(daemon->engine);
}

static int feed(struct daemon *daemon, const struct job *job, const struct job_estimate *estimate, struct error *err)
{
    struct record_submitted wants = job_submitted(job);
    struct reason why;
    char text[REASON_TEXT];

    wants.request_bytes = estimate->bytes;
    wants.request_source = SOURCE_ESTIMATED;
    fit_request(daemon->core, &wants);
    if (!core_could_ever_run(daemon->core, &wants, &why))
        return error_set(err, ERANGE, "by it the job %s", reason_format(&why, nodetime_now_ns(), text));
    return engine_input(daemon->engine,
                        &(struct record){.type = RECORD_ESTIMATED,
                                         .at_ns = nodetime_now_ns(),
                                         .job = job->id,
                                         .estimated = {wants.request_bytes, estimate->smact_permille}},
                        err);
}

static uint32_t use(struct recording *capture, struct job_view *view, const struct job *job)
{
    struct daemon *daemon = capture->captures->daemon;
    CLEANUP(free_ptr) char *text = job_estimate_text(&capture->estimate);

    if (capture->rc == 0 && capture->estimate.bytes < 0)
        capture->rc = error_set(&capture->err, ENODATA, "%s",
                                capture->estimate.warnings.count ? capture->estimate.warnings.items[0]
                                                                 : "nothing can be estimated from it");
    if (capture->rc == 0)
        capture->rc = feed(daemon, job, &capture->estimate, &capture->err);
    if (capture->rc != 0) {
        say_why_not(daemon, view, &capture->err);
        return CAPTURE_NOTHING;
    }
    daemon_log("job %" PRIu64 ": %s", view->id, text);
    keep_estimate(daemon, view, &capture->estimate);
    engine_turn(daemon->engine);
    return CAPTURE_ESTIMATED;
}

static void start_due(struct captures *captures);

static void end(struct recording *capture, uint32_t outcome)
{
    struct captures *captures = capture->captures;

    captures->counts[outcome]++;
    if (!captures->stopping)
        show_estimating(captures->daemon, capture->job, false);
    capture->user->busy = false;
    DL_DELETE(captures->running, capture);
    captures->running_count--;
    job_spec_release(&capture->spec);
    job_estimate_release(&capture->estimate);
    free(capture->output);
    free(capture);
    if (captures->stopping)
        captures_free_at_last(captures);
    else
        start_due(captures);
}

/* The job and its view where it still wants an estimate. */
static const struct job *job_of(const struct recording *capture, struct job_view **view)
{
    const struct daemon *daemon = capture->captures->daemon;
    const struct job *job = capture->dropped ? NULL : core_find_job(daemon->core, capture->job);

    *view = job ? views_find(&daemon->views, capture->job) : NULL;
    return *view ? job : NULL;
}

/* On a thread of the pool: a capture is as large as a file that is submitted. */
static void make_estimate(uv_work_t *work)
{
    struct recording *capture = work->data;
    struct capture_answer answer;

    capture->rc = capture_answer_read(capture->output, capture->length, &answer, &capture->err);
    if (capture->rc == 0) {
        capture->spec.capture = steal_ptr(&answer.text);
        capture->spec.capture_name = steal_ptr(&answer.from);
        capture->rc = job_estimate_make(&capture->estimate, &capture->spec, capture->estimator, &capture->profile,
                                        capture->quantile_permille, &capture->err);
    }
    capture_answer_release(&answer);
}

static void after_estimate(uv_work_t *work, int canceled)
{
    struct recording *capture = work->data;
    struct job_view *view;
    const struct job *job = capture->captures->stopping ? NULL : job_of(capture, &view);

    (void)canceled; /* nobody does */
    end(capture, job ? use(capture, view, job) : CAPTURE_DROPPED);
}

static void on_ended(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct recording *capture = user;
    struct daemon *daemon = capture->captures->daemon;
    struct job_view *view;

    capture->child = NULL;
    if (!job_of(capture, &view)) {
        end(capture, CAPTURE_DROPPED);
    } else if (rc != 0) {
        capture->err = *err;
        say_why_not(daemon, view, &capture->err);
        end(capture, CAPTURE_FAILED);
    } else {
        capture->output = xmalloc(length + 1);
        memcpy(capture->output, output, length);
        capture->length = length;
        uv_queue_work(daemon->loop, &capture->work, make_estimate, after_estimate);
    }
}

/* ---- The start ---- */

static bool is_wanted(const struct captures *captures, const struct job_view *view)
{
    const struct daemon *daemon = captures->daemon;
    const struct job *job = view ? core_find_job(daemon->core, view->id) : NULL;
    const struct job_spec spec = job ? job_view_spec(view) : (struct job_spec){0};
    uint32_t source;

    if (!job || view->unreadable || spec.no_capture || job->wants->request_bytes >= 0 || !looks_like_python(&spec))
        return false;
    core_reservation(daemon->core, job, &source);
    return source != SOURCE_LEARNED && source != SOURCE_OBSERVED && source != SOURCE_RAISED;
}

static void set_inputs(struct recording *capture, const struct job_view *view)
{
    const struct daemon *daemon = capture->captures->daemon;
    const struct job_spec *spec = &view->common->spec;

    job_spec_init(&capture->spec);
    capture->spec.batch_size = spec->batch_size;
    capture->spec.optimizer = xstrdup(spec->optimizer);
    capture->spec.precision = xstrdup(spec->precision);
    capture->estimator = estimator_find(estimator_name(daemon->config.estimator));
    capture->quantile_permille = daemon->config.estimate_quantile_permille;
    node_machine_profile(daemon->node, &capture->profile);
}

static void start(struct captures *captures, struct capturing_user *user, struct job_view *view)
{
    static const struct low_child_limits limits = {.what = "capture",
                                                   .too_long = "give --capture or --gpu-memory",
                                                   .too_large = "give --capture or --gpu-memory",
                                                   .time_s = CAPTURE_TIME_S + BACKSTOP_S,
                                                   .memory_bytes = CAPTURE_MEMORY_BYTES,
                                                   .output_bytes = CAPTURE_OUTPUT_BYTES};
    struct recording *capture = xcalloc(1, sizeof *capture);
    char *argv[] = {captures->program, NULL};
    CLEANUP(free_ptr) char *request = NULL;

    *capture = (struct recording){.captures = captures, .job = view->id, .user = user, .work.data = capture};
    job_estimate_init(&capture->estimate);
    set_inputs(capture, view);
    user->busy = true;
    DL_APPEND(captures->running, capture);
    captures->running_count++;
    capture->rc = capture_ask(captures->daemon, view, &request, &capture->err);
    if (capture->rc == 0)
        capture->rc = low_child_start(captures->daemon->loop, argv, request, &limits, on_ended, capture,
                                      &capture->child, &capture->err);
    if (capture->rc == 0) {
        show_estimating(captures->daemon, view->id, true);
    } else {
        say_why_not(captures->daemon, view, &capture->err);
        end(capture, CAPTURE_FAILED);
    }
}

/* The user's next job that is still to be captured; NULL: none. */
static struct job_view *next_of(const struct captures *captures, struct capturing_user *user)
{
    while (user->first < user->count) {
        struct job_view *view = views_find(&captures->daemon->views, user->jobs[user->first++]);
        if (is_wanted(captures, view))
            return view;
    }
    user->first = user->count = 0;
    return NULL;
}

static bool start_one(struct captures *captures)
{
    struct capturing_user *user;
    struct job_view *view = NULL;

    DL_FOREACH (captures->users, user)
        if (!user->busy && (view = next_of(captures, user)))
            break;
    if (!view)
        return false;
    DL_DELETE(captures->users, user); /* the others have theirs first */
    DL_APPEND(captures->users, user);
    start(captures, user, view);
    return true;
}

static void start_due(struct captures *captures)
{
    if (captures->starting)
        return; /* one that could not be started has ended */
    captures->starting = true;
    while (captures->can && captures->running_count < CAPTURES_MOST && start_one(captures))
        ;
    captures->starting = false;
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
    array_reserve(user->jobs, user->capacity, user->count + 1);
    user->jobs[user->count++] = job;
    if (!uv_is_active((uv_handle_t *)captures->begin))
        uv_timer_start(captures->begin, on_begin, BEGIN_WALL_MS, 0);
}

void captures_drop(struct captures *captures, uint64_t job)
{
    struct recording *capture;

    DL_FOREACH (captures->running, capture)
        if (capture->job == job)
            break;
    if (!capture || capture->dropped)
        return;
    capture->dropped = true;
    if (capture->child) {
        low_child_free(steal_ptr(&capture->child));
        end(capture, CAPTURE_DROPPED);
    } /* else its thread ends soon */
}

/* Those that were tried are not tried again. */
static bool was_tried(const struct job_view *view)
{
    const struct spec_strings *warnings = &view->common->estimate.warnings;

    for (size_t i = 0; i < warnings->count; i++)
        if (strncmp(warnings->items[i], REASON_NO_AUTO, strlen(REASON_NO_AUTO)) == 0)
            return true;
    return false;
}

void captures_resume(struct captures *captures)
{
    for (const struct job_view *view = captures->daemon->views.jobs; view; view = view->hh.next)
        if ((view->state == JOB_QUEUED || view->state == JOB_HELD) && !was_tried(view))
            captures_consider(captures, view->id);
}

/* ---- From begin to end ---- */

static void on_checked(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct captures *captures = user;

    captures->check = NULL;
    captures->can = rc == 0;
    if (captures->can) {
        start_due(captures);
        return;
    }
    daemon_log("no automatic captures: %s", err->text);
    free_ptr(&captures->program);
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
    struct recording *capture, *next;

    if (!captures)
        return;
    captures->stopping = true;
    low_child_free(captures->check);
    uv_close((uv_handle_t *)captures->begin, free_handle);
    DL_FOREACH_SAFE (captures->running, capture, next) {
        if (!capture->child || capture->dropped)
            continue;
        low_child_free(capture->child);
        DL_DELETE(captures->running, capture);
        job_spec_release(&capture->spec);
        free(capture);
    }
    captures_free_at_last(captures);
}
