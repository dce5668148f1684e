#include "daemon/capture/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/capture_answer.h"
#include "api/spec.h"
#include "base/memory.h"
#include "daemon/capture/ask.h"
#include "daemon/capture/cache.h"
#include "daemon/capture/digests.h"
#include "daemon/capture/may_be_python.h"
#include "daemon/capture/result.h"
#include "daemon/log.h"
#include "daemon/low_child.h"
#include "daemon/node/node.h"

#define BACKSTOP_S 30 /* for the sandbox itself, which has limits of its own */

struct recording {
    struct daemon *daemon;
    char *program;       /* borrowed */
    const char *missing; /* borrowed: why it runs without a sandbox; NULL: it has one */
    void (*ended)(uint32_t outcome, void *user);
    void *user;
    uint64_t job, key;
    uid_t uid;
    bool fresh, dropped;
    bool reused;             /* `cached` still holds */
    bool failed;             /* it did not run to its end */
    bool path_anew;          /* its command sets PYTHONPATH */
    struct low_child *child; /* NULL: none runs */
    uv_work_t work;
    json_t *words; /* owned: digests of the command's words; with digests once they were looked at */
    bool looked;
    /* A thread's input and result. */
    struct job_spec spec; /* the part that an estimate needs: owned */
    const struct estimator *estimator;
    struct machine_profile profile;
    int32_t quantile_permille;
    char *output; /* owned */
    size_t length;
    struct cached_capture cached; /* `said` is NULL: there is none */
    struct job_estimate estimate;
    struct error err, store_err; /* the latter "": it is kept */
    int rc;
};

static void end(struct recording *recording, uint32_t outcome)
{
    recording->ended(outcome, recording->user);
    json_decref(recording->words);
    job_spec_release(&recording->spec);
    job_estimate_release(&recording->estimate);
    capture_cache_release(&recording->cached);
    free(recording->output);
    free(recording);
}

/* The job and its view where it still wants an estimate. */
static const struct job *job_of(const struct recording *recording, struct job_view **view)
{
    const struct daemon *daemon = recording->daemon;
    const struct job *job = recording->dropped ? NULL : core_find_job(daemon->core, recording->job);

    *view = job ? views_find(&daemon->views, recording->job) : NULL;
    return *view ? job : NULL;
}

/* ---- The end, on a thread of the pool: a capture is as large as a file that is submitted ---- */

static void keep(struct recording *recording, struct capture_answer *answer)
{
    json_t *digests = recording->looked ? recording->words : NULL, *read = digests_of_answer(answer->header);
    struct cached_capture *cached = &recording->cached;

    if (digests && read)
        json_array_extend(digests, read);
    capture_cache_release(cached);
    *cached =
        (struct cached_capture){.job = recording->job,
                                .digests = json_incref(digests),
                                .text = steal_ptr(&answer->text),
                                .said = recording->rc == 0 ? steal_ptr(&answer->from) : xstrdup(recording->err.text)};
    if (capture_cache_store(recording->daemon->config.state_directory, recording->uid, recording->key, cached,
                            &recording->store_err) == 0)
        recording->store_err.text[0] = '\0';
    json_decref(read);
}

static void take_new(struct recording *recording)
{
    const struct error failure = recording->err;
    struct capture_answer answer = {0};

    recording->rc = capture_answer_read(recording->output, recording->length, recording->failed ? failure.text : NULL,
                                        &answer, &recording->err);
    if (recording->rc && recording->length == 0 && recording->path_anew)
        error_set(&recording->err, ENODATA,
                  "%s%sits command sets PYTHONPATH anew, by which Python finds what records it", failure.text,
                  recording->failed ? "; " : "");
    keep(recording, &answer);
    capture_answer_release(&answer);
}

static void take_kept(struct recording *recording)
{
    const struct cached_capture *cached = &recording->cached;

    if (!cached->text)
        recording->rc =
            error_set(&recording->err, ENODATA, "%s (tried for job %" PRIu64 ")", cached->said, cached->job);
}

static void conclude(uv_work_t *work)
{
    struct recording *recording = work->data;
    struct cached_capture *cached = &recording->cached;
    int64_t events_left = PROGRAM_MAX_EVENTS;

    if (recording->reused)
        take_kept(recording);
    else
        take_new(recording);
    if (recording->rc != 0)
        return;
    recording->spec.capture = steal_ptr(&cached->text);
    recording->spec.capture_name =
        recording->reused ? xasprintf("%s, made for job %" PRIu64, cached->said, cached->job) : xstrdup(cached->said);
    recording->rc = job_estimate_make(&recording->estimate, &recording->spec, recording->estimator, &recording->profile,
                                      recording->quantile_permille, &events_left, &recording->err);
    if (recording->missing && !recording->reused) {
        CLEANUP(free_ptr) char *line = xasprintf("captured without a sandbox, as asked: %s", recording->missing);
        spec_strings_add(&recording->estimate.warnings, line);
    }
}

static void say_why_not(struct recording *recording, struct job_view *view)
{
    capture_add_remedy(&recording->err);
    result_say_why_not(recording->daemon, view, &recording->err);
}

static void after_conclusion(uv_work_t *work, int canceled)
{
    struct recording *recording = work->data;
    uint32_t outcome = recording->failed ? CAPTURE_FAILED : CAPTURE_NOTHING;
    struct job_view *view;
    const struct job *job = job_of(recording, &view);

    (void)canceled; /* nobody does */
    if (*recording->store_err.text)
        daemon_log("the capture of job %" PRIu64 " is not kept: %s", recording->job, recording->store_err.text);
    if (!job)
        outcome = CAPTURE_DROPPED;
    else if (recording->rc != 0)
        say_why_not(recording, view);
    else if (result_use(recording->daemon, view, job, &recording->estimate))
        outcome = CAPTURE_ESTIMATED;
    end(recording, job && recording->reused ? CAPTURE_REUSED : outcome);
}

/* ---- A new one ---- */

static void on_captured(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct recording *recording = user;

    recording->child = NULL;
    recording->failed = rc != 0;
    recording->rc = rc;
    recording->err = *err;
    recording->output = xmalloc(length + 1);
    memcpy(recording->output, output, length);
    recording->length = length;
    uv_queue_work(recording->daemon->loop, &recording->work, conclude, after_conclusion);
}

static void capture(struct recording *recording)
{
    static const struct low_child_limits limits = {.what = "capture",
                                                   .too_long = "give --capture or --gpu-memory",
                                                   .too_large = "give --capture or --gpu-memory",
                                                   .time_s = CAPTURE_TIME_S + BACKSTOP_S,
                                                   .memory_bytes = CAPTURE_MEMORY_BYTES,
                                                   .output_bytes = CAPTURE_OUTPUT_BYTES};
    struct daemon *daemon = recording->daemon;
    char *argv[] = {recording->program, NULL};
    CLEANUP(free_ptr) char *request = NULL;
    struct job_view *view;

    if (!job_of(recording, &view)) {
        end(recording, CAPTURE_DROPPED);
        return;
    }
    recording->rc = capture_ask(view, recording->missing != NULL, &request, &recording->err);
    if (recording->rc == 0)
        recording->rc = low_child_start(daemon->loop, argv, request, &limits, on_captured, recording, &recording->child,
                                        &recording->err);
    if (recording->rc != 0) {
        say_why_not(recording, view);
        end(recording, CAPTURE_FAILED);
    }
}

/* ---- A cached one ---- */

static void on_looked(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct recording *recording = user;
    const json_t *asked = recording->cached.said ? recording->cached.digests : recording->words;
    json_t *seen = rc == 0 ? digests_read(asked, output, length) : NULL;

    (void)err; /* the capture says the same of the directory, or of the sandbox */
    recording->child = NULL;
    recording->reused = recording->cached.said && seen && json_equal(seen, recording->cached.digests);
    recording->looked = seen != NULL;
    for (size_t i = 0; seen && i < json_array_size(recording->words); i++)
        json_array_set(recording->words, i, json_array_get(seen, i));
    json_decref(seen);
    if (recording->reused)
        uv_queue_work(recording->daemon->loop, &recording->work, conclude, after_conclusion);
    else
        capture(recording);
}

static void look(struct recording *recording)
{
    static const struct low_child_limits limits = {.what = "look at its files",
                                                   .too_long = "it is captured anew",
                                                   .too_large = "it is captured anew",
                                                   .time_s = DIGESTS_TIME_S + BACKSTOP_S,
                                                   .memory_bytes = CAPTURE_MEMORY_BYTES,
                                                   .output_bytes = DIGESTS_OUTPUT_BYTES};
    char *argv[] = {recording->program, NULL};
    CLEANUP(free_ptr) char *request = NULL;
    struct job_view *view;
    struct job_spec spec;

    if (!job_of(recording, &view)) {
        end(recording, CAPTURE_DROPPED);
        return;
    }
    spec = job_view_spec(view);
    recording->words = digests_of_words(&spec);
    request = capture_ask_digests(view, recording->missing != NULL,
                                  recording->cached.said ? recording->cached.digests : recording->words);
    if (low_child_start(recording->daemon->loop, argv, request, &limits, on_looked, recording, &recording->child,
                        NULL) != 0)
        capture(recording);
}

static void load(uv_work_t *work)
{
    struct recording *recording = work->data;

    if (capture_cache_load(recording->daemon->config.state_directory, recording->uid, recording->key,
                           &recording->cached))
        recording->reused = recording->fresh;
    if (recording->reused)
        conclude(work);
}

static void after_load(uv_work_t *work, int canceled)
{
    struct recording *recording = work->data;

    if (recording->reused)
        after_conclusion(work, canceled);
    else
        look(recording);
}

/* ---- From begin to end ---- */

static void set_inputs(struct recording *recording, const struct job_view *view)
{
    const struct daemon *daemon = recording->daemon;
    const struct job_spec *spec = view->common->spec, whole = job_view_spec(view);
    struct allocator_settings settings = {0};
    char text[ALLOCATOR_SETTINGS_TEXT];

    recording->path_anew = sets_python_path_anew(&whole);
    job_spec_init(&recording->spec);
    job_allocator_settings(&whole, &settings);
    if (*allocator_settings_text(&settings, text)) {
        CLEANUP(free_ptr) char *variable = xasprintf("PYTORCH_ALLOC_CONF=%s", text);
        spec_strings_add(&recording->spec.environment, variable);
    }
    recording->spec.batch_size = spec->batch_size;
    recording->spec.optimizer = xstrdup(spec->optimizer);
    recording->spec.precision = xstrdup(spec->precision);
    recording->estimator = estimator_find(estimator_name(daemon->config.estimator));
    recording->quantile_permille = daemon->config.estimate_quantile_permille;
    node_machine_profile(daemon->node, &recording->profile);
}

struct recording *recording_new(struct daemon *daemon, char *program, const char *missing, const struct job_view *view,
                                uint64_t key, bool fresh, void (*ended)(uint32_t outcome, void *user), void *user)
{
    struct recording *recording = xcalloc(1, sizeof *recording);

    *recording = (struct recording){.daemon = daemon,
                                    .program = program,
                                    .missing = missing,
                                    .ended = ended,
                                    .user = user,
                                    .job = view->id,
                                    .key = key,
                                    .uid = view->wants->uid,
                                    .fresh = fresh,
                                    .work.data = recording};
    job_estimate_init(&recording->estimate);
    set_inputs(recording, view);
    uv_queue_work(daemon->loop, &recording->work, load, after_load);
    return recording;
}

void recording_drop(struct recording *recording)
{
    if (recording->dropped)
        return;
    recording->dropped = true;
    if (recording->child) {
        low_child_free(steal_ptr(&recording->child));
        end(recording, CAPTURE_DROPPED);
    } /* else its thread ends soon */
}
