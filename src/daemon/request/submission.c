#include "daemon/request/submission.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/spec.h"
#include "api/submission_text.h"
#include "api/workload_key.h"
#include "base/digest.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "daemon/account/past_runs.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/repeats.h"
#include "daemon/fit.h"
#include "daemon/node/node.h"

#define QUICK_BYTES 16384
#define LARGE_BYTES 65536

/* What the models of a request may cost together, in events that are replayed; what one turn on the pool does at most,
 * some 20 ms; and what a model costs beside its events. A model that takes more than a turn is a costly one. */
#define REQUEST_EVENTS PROGRAM_MAX_EVENTS
#define TURN_EVENTS    50000
#define MODEL_EVENTS   1000

#define POOL_NICE 5

/* A job of a request. */
struct applicant {
    struct job_spec spec;
    char *text;         /* owned; of the spec, to be stored */
    size_t environment; /* of the submission's */
    uint64_t model;     /* digest of all that its estimate depends on; 0: there is nothing to estimate */
    int64_t events;     /* that it has been given of the request's */
    bool costly;        /* its estimate is still to be made, in a turn of its own */
    struct job_estimate estimate;
    struct record_submitted wants;
};

struct submission {
    uv_work_t work;
    struct daemon *daemon;
    uid_t uid;
    const char *body;
    size_t length;
    submission_done *done;
    void *user;
    struct submission *next; /* in the order of their turns */
    bool started;
    bool read; /* the loop knows that all of it is read: costly estimates are left */
    /* The thread's input: it does not change meanwhile. */
    const struct config *config;
    struct machine_profile profile;
    /* The thread's result. */
    struct json_piece *pieces;    /* owned: its jobs' texts, in the body */
    size_t piece_count;           /* 0: it was not looked at yet */
    struct applicant *applicants; /* owned */
    size_t count;                 /* of those that were read, and are to be released */
    size_t completed;             /* of these, those before the first costly one, when all have been read */
    int64_t events_left;
    struct spec_strings *environments; /* owned; most jobs of a request have the same */
    size_t environment_count, environment_capacity;
    struct owner owner;                  /* its text is owned; NULL: not known yet */
    bool looked_up;                      /* by this submission */
    char request_id[REPEATS_ID_MAX + 1]; /* "": none */
    uint64_t digest;                     /* of the body */
    int status;                          /* 201 as long as nothing is wrong */
    struct error err;
};

static bool is_read(const struct submission *submission)
{
    return submission->piece_count && submission->count == submission->piece_count;
}

static bool is_over(const struct submission *submission)
{
    return submission->status != 201 || (is_read(submission) && submission->completed == submission->count);
}

/* The recorded figure that goes by the estimator's name; -1: there is none such. */
static int64_t recorded_figure(const struct config *config, const struct job_spec *spec)
{
    const char *name = estimator_name(config->estimator);

    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        if (strcmp(spec_recorded_names[i], name) == 0)
            return spec->recorded_bytes[i];
    return -1;
}

/* The declared figure, else the recorded figure that the configuration trusts, else the estimate, else unknown. */
static void set_request(const struct config *config, const struct job_spec *spec, const struct job_estimate *estimate,
                        struct record_submitted *wants)
{
    int64_t recorded = recorded_figure(config, spec);

    wants->request_bytes = -1;
    wants->request_source = SOURCE_UNKNOWN;
    if (spec->gpu_memory_bytes >= 0) {
        wants->request_bytes = spec->gpu_memory_bytes;
        wants->request_source = SOURCE_DECLARED;
    } else if (recorded >= 0) {
        wants->request_bytes = recorded;
        wants->request_source = SOURCE_RECORDED;
    } else if (estimate->bytes >= 0) {
        wants->request_bytes = estimate->bytes;
        wants->request_source = SOURCE_ESTIMATED;
    }
}

static void set_wants(const struct config *config, const struct job_spec *spec, const struct job_estimate *estimate,
                      uid_t uid, struct record_submitted *wants)
{
    *wants = (struct record_submitted){.uid = uid,
                                       .gpus = spec->gpus,
                                       .smact_permille = estimate->smact_permille,
                                       .max_slowdown_permille =
                                           spec->max_slowdown_permille < 0 ? 0 : (int32_t)spec->max_slowdown_permille,
                                       .share = spec->share ? share_mode_find(spec->share) : SHARE_ANY,
                                       .exclusive = spec->exclusive,
                                       .held = spec->held,
                                       .time_limit_ns = spec->time_limit_ns < 0 ? 0 : spec->time_limit_ns,
                                       .signal = spec->signal,
                                       .signal_before_ns = spec->signal_before_ns < 0 ? 0 : spec->signal_before_ns,
                                       .requeue = spec->requeue};
    set_request(config, spec, estimate, wants);
    workload_key(spec, uid, wants->workload);
}

/* Their content is in the estimate and the key: nothing needs them again. */
static void drop_texts(struct job_spec *spec)
{
    if (spec->capture && spec->capture_name && strcmp(spec->capture_name, SPEC_CAPTURE_AUTO) == 0) {
        free(spec->capture_name); /* a file of that name is not the wish */
        spec->capture_name = xstrdup("./" SPEC_CAPTURE_AUTO);
    }
    free_ptr(&spec->summary);
    free_ptr(&spec->capture);
    free_ptr(&spec->hf_config);
}

/* ---- On a thread of the pool ---- */

/* A person that declares less than even the best guess should know. */
static void compare_with_declared(const struct job_spec *spec, struct job_estimate *estimate)
{
    char declared[UNITS_TEXT], median[UNITS_TEXT];

    if (estimate->median_bytes < 0 || spec->gpu_memory_bytes < 0 || spec->gpu_memory_bytes >= estimate->median_bytes)
        return;
    CLEANUP(free_ptr)
    char *text =
        xasprintf("the declared %s is less than the %s that it is estimated to need",
                  format_bytes(spec->gpu_memory_bytes, declared), format_bytes(estimate->median_bytes, median));
    spec_strings_add(&estimate->warnings, text);
}

/* Everything that job_estimate_make() looks at, and the declared figure, which goes into its warnings. */
static uint64_t digest_of_model(const struct job_spec *spec)
{
    const char *const texts[] = {spec->summary,      spec->capture,      spec->hf_config,
                                 spec->summary_name, spec->capture_name, spec->hf_config_name,
                                 spec->optimizer,    spec->precision,    spec->method};
    const int64_t numbers[] = {spec->batch_size, spec->sequence_length, spec->gpus, spec->gpu_memory_bytes};
    uint64_t digest = digest_add(DIGEST_EMPTY, numbers, sizeof numbers);

    if (!spec->summary && !spec->capture && !spec->hf_config)
        return 0;
    for (size_t i = 0; i < array_size(texts); i++) {
        digest = digest_add(digest, &(char){texts[i] != NULL}, 1);
        if (texts[i])
            digest = digest_add(digest, texts[i], strlen(texts[i]) + 1);
    }
    return digest | 1;
}

/* The first job of the request that has the same model. */
static const struct applicant *first_with(const struct submission *submission, uint64_t model)
{
    const struct applicant *at = submission->applicants;

    while (at->model != model)
        at++;
    return at;
}

/* An unreadable file is refused, unless it is not needed: a job file by position has to name a summary. -E2BIG: it has
 * more events than `most`. */
static int estimate_model(struct submission *submission, struct applicant *applicant, int64_t most)
{
    const struct config *config = submission->config;
    int64_t left = most;
    int rc =
        job_estimate_make(&applicant->estimate, &applicant->spec, estimator_find(estimator_name(config->estimator)),
                          &submission->profile, config->estimate_quantile_permille, &left, &submission->err);

    applicant->events = most - left;
    if (rc != 0 && (rc == -E2BIG || applicant->spec.gpu_memory_bytes < 0))
        return rc;
    if (rc != 0)
        spec_strings_add(&applicant->estimate.warnings, submission->err.text);
    else
        compare_with_declared(&applicant->spec, &applicant->estimate);
    return 0;
}

/* At once: thousands of environments between the jobs' lasting data would leave the heap in shreds. */
static void put_environment_aside(struct submission *submission, struct applicant *applicant)
{
    struct spec_strings *environment = &applicant->spec.environment;
    size_t count = submission->environment_count;

    if (count && spec_strings_equal(environment, &submission->environments[count - 1])) {
        spec_strings_release(environment);
    } else {
        array_reserve(submission->environments, submission->environment_capacity, count + 1);
        submission->environments[submission->environment_count++] = *environment;
    }
    *environment = (struct spec_strings){0};
    applicant->environment = submission->environment_count - 1;
}

static void complete(struct submission *submission, struct applicant *applicant)
{
    set_wants(submission->config, &applicant->spec, &applicant->estimate, submission->uid, &applicant->wants);
    drop_texts(&applicant->spec);
    applicant->text = submission_spec_to_text(&applicant->spec);
    put_environment_aside(submission, applicant);
    applicant->costly = false;
}

static int too_costly(struct submission *submission)
{
    error_set(
        &submission->err, E2BIG,
        "with its model the models of the request have about %" PRId64
        " events to replay, a request's may have %d, equal ones counted once: submit the jobs in several requests",
        REQUEST_EVENTS - submission->events_left, REQUEST_EVENTS);
    return 413;
}

/* Equal models are estimated once. A costly one is given its events now, and its estimate in a later turn. */
static int take_model(struct submission *submission, struct applicant *applicant, int64_t *turn)
{
    const struct applicant *same = first_with(submission, applicant->model);
    int rc = 0;

    if (same != applicant) {
        applicant->costly = same->costly;
        if (!same->costly)
            applicant->estimate = job_estimate_copy(&same->estimate);
        return 201;
    }
    rc = estimate_model(submission, applicant, TURN_EVENTS);
    applicant->costly = rc == -E2BIG;
    if (rc && rc != -E2BIG)
        return 400;
    submission->events_left -= applicant->events;
    *turn -= applicant->costly ? MODEL_EVENTS : applicant->events + MODEL_EVENTS;
    return submission->events_left < 0 ? too_costly(submission) : 201;
}

static int check_host_memory(const struct config *config, const struct job_spec *spec, struct error *err)
{
    char asked[UNITS_TEXT], most[UNITS_TEXT];

    if (config->job_memory_max_bytes == 0 || spec->host_memory_bytes <= config->job_memory_max_bytes)
        return 0;
    return error_set(
        err, EINVAL,
        "--memory: %s of host memory is more than one job may have here, %s (job_memory_max): ask for less",
        format_bytes(spec->host_memory_bytes, asked), format_bytes(config->job_memory_max_bytes, most));
}

/* --cpus is a limit: more than there are would be none. */
static int check_cpus(const struct job_spec *spec, struct error *err)
{
    long here = spec->cpus > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 0; /* which reads a file */

    if (here < 1 || spec->cpus <= here)
        return 0;
    return error_set(err, EINVAL, "--cpus: %" PRId64 " are more processors than this server has, %ld: ask for less",
                     (int64_t)spec->cpus, here);
}

static int read_applicant(struct submission *submission, const json_t *json, struct applicant *applicant, int64_t *turn)
{
    const struct config *config = submission->config;
    struct job_spec *spec = &applicant->spec;
    struct error *err = &submission->err;
    int status;

    if (job_spec_from_json(json, spec, err) != 0 || check_host_memory(config, spec, err) != 0 ||
        check_cpus(spec, err) != 0)
        return 400;
    if (spec->engine || spec->cluster || spec->slurm_job >= 0 || spec->slurm_restart >= 0 || spec->slurm_node) {
        error_set(err, EINVAL, "engine, cluster and slurm_... are what carma says of a lease: leave them out");
        return 400;
    }
    applicant->model = estimator_computes(config->estimator) ? digest_of_model(spec) : 0;
    if (applicant->model && (status = take_model(submission, applicant, turn)) != 201)
        return status;
    if (!applicant->costly)
        complete(submission, applicant);
    return 201;
}

static int status_of(int rc)
{
    return rc == -E2BIG ? 413 : 400;
}

/* The tree of one job at a time. */
static int read_job(struct submission *submission, int64_t *turn)
{
    const struct json_piece *job = &submission->pieces[submission->count];
    struct applicant *applicant = &submission->applicants[submission->count++];
    json_t *json;
    int rc, status;

    job_spec_init(&applicant->spec);
    job_estimate_init(&applicant->estimate);
    rc = json_read(job->text, job->length, JSON_REJECT_DUPLICATES, &(struct json_bounds)SPEC_JSON_BOUNDS, &json,
                   &submission->err);
    status = rc ? status_of(rc) : read_applicant(submission, json, applicant, turn);
    json_decref(json);
    if (status != 201)
        error_prefix(&submission->err, "job %zu of the request", submission->count);
    return status;
}

/* As many as a turn may cost. */
static int read_jobs(struct submission *submission)
{
    int64_t turn = TURN_EVENTS;
    int status = 201;

    while (!is_read(submission) && status == 201 && turn > 0)
        status = read_job(submission, &turn);
    return status;
}

static void skip_completed(struct submission *submission)
{
    while (submission->completed < submission->count && !submission->applicants[submission->completed].costly)
        submission->completed++;
}

/* Of the first costly one, and of those with the same model that follow it. */
static int estimate_costly(struct submission *submission)
{
    struct applicant *applicant = &submission->applicants[submission->completed];
    int64_t most = applicant->events + submission->events_left;
    int rc = estimate_model(submission, applicant, most);

    submission->events_left = most - applicant->events;
    if (rc) {
        int status = rc == -E2BIG ? too_costly(submission) : 400;
        error_prefix(&submission->err, "job %zu of the request", submission->completed + 1);
        return status;
    }
    complete(submission, applicant);
    for (size_t i = submission->completed + 1; i < submission->count; i++)
        if (submission->applicants[i].costly && submission->applicants[i].model == applicant->model) {
            submission->applicants[i].estimate = job_estimate_copy(&applicant->estimate);
            complete(submission, &submission->applicants[i]);
        }
    return 201;
}

static int take_request_id(struct submission *submission, const char *id)
{
    if (!repeats_is_id(id)) {
        error_set(&submission->err, EINVAL, "request_id '%.80s' is not 1 to %d letters, digits, '-', '_' or '.'", id,
                  REPEATS_ID_MAX);
        return 400;
    }
    snprintf(submission->request_id, sizeof submission->request_id, "%s", id);
    submission->digest = digest_of_text(submission->body);
    return 201;
}

/* The request without its jobs, of which there are `count`: each has left its place. */
static int read_frame(struct submission *submission, const struct strbuf *text, size_t count)
{
    static const struct json_bounds bounds = {.values = SPEC_MAX_JOBS + 8, .depth = 2, .bytes = 4096};
    json_t *frame, *jobs = NULL;
    const char *id = NULL;
    int status = 201;
    int rc = json_read(text->text, text->length, JSON_REJECT_DUPLICATES, &bounds, &frame, &submission->err);

    if (rc) {
        error_prefix(&submission->err, "the request");
        return status_of(rc);
    }
    if (json_unpack_ex(frame, NULL, JSON_STRICT, "{s:o, s?s}", "jobs", &jobs, "request_id", &id) != 0 ||
        !json_is_array(jobs) || count == 0 || json_array_size(jobs) != count) {
        error_set(&submission->err, EINVAL,
                  "the request is not {\"jobs\": [at least one job], \"request_id\": a text or left out}");
        status = 400;
    } else if (id) {
        status = take_request_id(submission, id);
    }
    json_decref(frame);
    return status;
}

/* Counted before anything is made of it. */
static int read_request(struct submission *submission)
{
    static const struct json_bounds bounds = {.values = SUBMISSION_MAX_VALUES, .depth = 8, .bytes = SPEC_MAX_REQUEST};
    size_t count, most = submission->length / 3 + 1; /* as many as such a text can have: "{}," */
    CLEANUP(strbuf_release) struct strbuf frame = {0};
    int rc, status;

    if ((rc = json_check(submission->body, submission->length, &bounds, &submission->err))) {
        error_prefix(&submission->err, "the request");
        return status_of(rc);
    }
    most = most < SPEC_MAX_JOBS ? most : SPEC_MAX_JOBS;
    submission->pieces = xcalloc(most, sizeof *submission->pieces);
    count = json_take_apart(submission->body, submission->length, &frame, submission->pieces, most);
    if (count > most) {
        error_set(&submission->err, E2BIG, "%zu jobs at once are too many: submit at most %d", count, SPEC_MAX_JOBS);
        return 413;
    }
    status = read_frame(submission, &frame, count);
    if (status == 201) {
        submission->piece_count = count;
        submission->applicants = xcalloc(count, sizeof *submission->applicants);
    }
    return status;
}

static int begin(struct submission *submission)
{
    submission->looked_up = !submission->owner.user;
    if (submission->looked_up && owner_look_up(submission->uid, &submission->owner, &submission->err) != 0)
        return 503;
    return read_request(submission);
}

/* One turn. */
static void work(uv_work_t *work)
{
    struct submission *submission = work->data;

    if (is_read(submission)) {
        submission->status = estimate_costly(submission);
    } else {
        submission->status = submission->piece_count ? 201 : begin(submission);
        if (submission->status == 201)
            submission->status = read_jobs(submission);
    }
    if (is_read(submission))
        skip_completed(submission);
}

/* Behind the loop, which is another thread of the process: on a busy machine it would wait for a processor behind all
 * estimates of all users. Only root gets its priority back. */
static void work_on_pool(uv_work_t *done)
{
    bool yields = geteuid() == 0;
    int before = getpriority(PRIO_PROCESS, 0);

    if (yields)
        setpriority(PRIO_PROCESS, 0, before + POOL_NICE);
    work(done);
    if (yields)
        setpriority(PRIO_PROCESS, 0, before);
}

/* ---- On the loop ---- */

/* The last tenth of the queue is for users with few jobs: a user that fills it leaves this part to the others. */
#define KEPT_PART   10
#define LITTLE_PART 100 /* of the queue, or one job */

static int check_queue(struct submission *submission)
{
    const struct core *core = submission->daemon->core;
    uint64_t unfinished = core_job_count(core), most = submission->daemon->config.max_queued;
    uint64_t little = most > LITTLE_PART ? most / LITTLE_PART : 1, has = core_job_count_of(core, submission->uid);
    uint64_t kept = has + submission->count <= little ? 0 : most / KEPT_PART;

    if (unfinished <= most && submission->count <= most - unfinished &&
        (!kept || unfinished + submission->count <= most - kept))
        return 201;
    if (unfinished > most || submission->count > most - unfinished)
        error_set(&submission->err, EAGAIN,
                  "the queue is full: %" PRIu64 " jobs have not ended, max_queued is %" PRIu64
                  " and you submit %zu: try again later",
                  unfinished, most, submission->count);
    else
        error_set(&submission->err, EAGAIN,
                  "the queue is nearly full: %" PRIu64 " jobs have not ended, and the last %" PRIu64
                  " of max_queued %" PRIu64 " are for users with at most %" PRIu64 " (you have %" PRIu64
                  " and submit %zu): try again later",
                  unfinished, kept, most, little, has, submission->count);
    return 503;
}

/* Of its user's own jobs: it can wait for them, or cancel some. */
static int check_user(struct submission *submission)
{
    const struct core *core = submission->daemon->core;
    uint32_t most = core_configuration(core)->per_user.max_queued, has = core_job_count_of(core, submission->uid);

    if (most == 0 || (has <= most && submission->count <= most - has))
        return 201;
    error_set(&submission->err, EBUSY,
              "you have %" PRIu32 " unfinished jobs and submit %zu, a user may have %" PRIu32
              ": wait until some have ended, or cancel some",
              has, submission->count, most);
    return 409;
}

/* What carma's disk keeps of him: as many jobs as there are may each have megabytes. */
static int check_texts(struct submission *submission)
{
    int64_t most = submission->daemon->config.max_texts_per_user, more = 0;
    int64_t has = stored_texts_of(&submission->daemon->views, submission->uid);
    char had[UNITS_TEXT], added[UNITS_TEXT], may[UNITS_TEXT];

    for (size_t i = 0; i < submission->count; i++)
        more += (int64_t)strlen(submission->applicants[i].text);
    if (most == 0 || has + more <= most)
        return 201;
    error_set(&submission->err, EDQUOT,
              "the descriptions of your jobs take %s of carma's disk and you submit %s, a user may have %s "
              "(max_texts_per_user): wait until some have ended or cancel some, or submit with a smaller environment",
              format_bytes(has, had), format_bytes(more, added), format_bytes(most, may));
    return 503;
}

static int check_applicants(struct submission *submission)
{
    int status = check_user(submission);
    struct reason why;
    char text[REASON_TEXT];

    if (status == 201)
        status = check_queue(submission);
    if (status == 201)
        status = check_texts(submission);
    if (status != 201)
        return status;
    for (size_t i = 0; i < submission->count; i++) {
        struct applicant *applicant = &submission->applicants[i];
        fit_request(submission->daemon->core, &applicant->wants);
        if (job_spec_asks_for_capture(&applicant->spec) &&
            submission->daemon->config.auto_capture == AUTO_CAPTURE_OFF) {
            error_set(&submission->err, EINVAL,
                      "job '%s': the setting auto_capture is off here: give the file of carma.capture, not 'auto'",
                      applicant->spec.name);
            return 422;
        }
        if (!core_could_ever_run(submission->daemon->core, &applicant->wants, &why)) {
            error_set(&submission->err, EINVAL, "job '%s' can never run here: %s", applicant->spec.name,
                      reason_format(&why, nodetime_now_ns(), text));
            return 422;
        }
    }
    return 201;
}

static void take_in(struct submission *submission, struct applicant *applicant)
{
    struct daemon *daemon = submission->daemon;
    struct record input = {.type = RECORD_SUBMITTED, .at_ns = nodetime_now_ns(), .job = daemon->views.last_id + 1};
    struct job_view *view;

    past_runs_correct(daemon->past_runs, applicant->wants.uid, &applicant->estimate);
    applicant->wants.smact_permille = applicant->estimate.smact_permille;
    view = views_add(&daemon->views, input.job, &applicant->spec, &applicant->estimate);
    view->hidden = true;
    job_view_set_environment(view, &submission->environments[applicant->environment]);
    job_view_set_user(view, submission->owner.user);
    view->gid = submission->owner.gid;
    input.submitted = applicant->wants;
    engine_input(daemon->engine, &input, NULL);
}

/* Data that is only stored and answered, and then freed, comes after the lasting data of all of them: the heap has no
 * holes. */
static json_t *store_and_answer(struct submission *submission, uint64_t first)
{
    struct daemon *daemon = submission->daemon;
    json_t *jobs = json_array();

    for (uint64_t job = first; job <= daemon->views.last_id; job++) {
        struct job_view *view = views_find(&daemon->views, job);
        char *text =
            submission_join(submission->applicants[job - first].text, &view->common->estimate, &submission->owner);
        job_view_set_stored(view, strlen(text));
        engine_store_spec(daemon->engine, job, text);
        json_array_append_new(
            jobs, json_pack("{s:I, s:o}", "id", (json_int_t)job, "estimate", job_view_estimate_to_json(view)));
    }
    return jobs;
}

/* From now on the id stands for these jobs: also for a client that repeats it before they are stored, and is answered
 * after that. */
static void remember(const struct submission *submission, uint64_t first)
{
    const struct store_request request = {.id = submission->request_id,
                                          .uid = submission->uid,
                                          .digest = submission->digest,
                                          .first = first,
                                          .count = (uint32_t)submission->count,
                                          .at_s = store_request_now_s()};

    repeats_add(submission->daemon->repeats, &request);
    engine_store_request(submission->daemon->engine, &request);
}

/* The answer, sent or due; of a job that has been forgotten since, its number alone. */
static int answer_again(struct submission *submission, const struct store_request *request, json_t **jobs)
{
    if (request->digest != submission->digest) {
        error_set(&submission->err, EEXIST, "request_id '%s' is that of another submission: make a new one for each",
                  submission->request_id);
        return 409;
    }
    *jobs = json_array();
    for (uint64_t job = request->first; job < request->first + request->count; job++) {
        const struct job_view *view = views_find(&submission->daemon->views, job);
        json_array_append_new(*jobs, json_pack("{s:I, s:o}", "id", (json_int_t)job, "estimate",
                                               view ? job_view_estimate_to_json(view) : json_null()));
    }
    return 201;
}

/* A submission that was accepted before is not looked at again: the queue may be full by now, or the settings others.
 */
static void decide(struct submission *submission, json_t **jobs)
{
    struct daemon *daemon = submission->daemon;
    uint64_t first = daemon->views.last_id + 1;
    const struct store_request *request =
        *submission->request_id ? repeats_find(daemon->repeats, submission->uid, submission->request_id) : NULL;

    if (request) {
        submission->status = answer_again(submission, request, jobs);
        return;
    }
    if (submission->status == 201)
        submission->status = check_applicants(submission);
    if (submission->status != 201)
        return;
    if (*submission->request_id)
        remember(submission, first);
    for (size_t i = 0; i < submission->count; i++)
        take_in(submission, &submission->applicants[i]);
    *jobs = store_and_answer(submission, first);
}

static void finish(struct submission *submission)
{
    json_t *jobs = NULL;

    if (submission->daemon->stopping)
        submission->status = 503; /* nothing is taken any more */
    else
        decide(submission, &jobs);
    submission->done(submission->user, submission->status, jobs, &submission->err);
    if (submission->looked_up && !submission->daemon->stopping) /* they are gone then */
        owners_keep(submission->daemon->owners, submission->uid, &submission->owner);
    for (size_t i = 0; i < submission->count; i++) {
        free(submission->applicants[i].text);
        job_spec_release(&submission->applicants[i].spec);
        job_estimate_release(&submission->applicants[i].estimate);
    }
    for (size_t i = 0; i < submission->environment_count; i++)
        spec_strings_release(&submission->environments[i]);
    free(submission->environments);
    free(submission->pieces);
    free(submission->applicants);
    free(submission->owner.user);
    free(submission);
}

/* Where the uid's first submission hangs; at the end of the list where it has none. */
static struct submission **first_of(struct daemon *daemon, uid_t uid)
{
    struct submission **at = &daemon->submissions;

    while (*at && (*at)->uid != uid)
        at = &(*at)->next;
    return at;
}

static struct submission **end_of(struct daemon *daemon)
{
    struct submission **at = &daemon->submissions;

    while (*at)
        at = &(*at)->next;
    return at;
}

static bool is_large(const struct submission *submission)
{
    return submission->length > LARGE_BYTES;
}

/* The user's others, behind those of all others: the next turn is somebody else's. */
static void give_way(struct daemon *daemon, uid_t uid)
{
    struct submission *others = NULL, **last = &others;

    for (struct submission **at = &daemon->submissions, *submission; (submission = *at);) {
        if (submission->uid != uid) {
            at = &submission->next;
            continue;
        }
        *at = submission->next;
        *last = submission;
        last = &submission->next;
    }
    *last = NULL;
    *end_of(daemon) = others;
}

static void after(uv_work_t *done, int canceled);

/* Whose turn its next one has to be, where there is one such turn at a time: the large request that is being read, the
 * costly estimate that is being made. Meanwhile the others wait as texts, and the pool has threads for all other work.
 */
static struct submission **lane_of(const struct submission *submission)
{
    struct daemon *daemon = submission->daemon;

    if (submission->read)
        return &daemon->estimates_costly;
    return is_large(submission) ? &daemon->reads_large : NULL;
}

/* One at a time of each user: in their order, and nobody has the whole pool. */
static void start_waiting(struct daemon *daemon)
{
    for (struct submission *submission = daemon->submissions; submission; submission = submission->next) {
        struct submission **lane = lane_of(submission);
        if (submission->started || *first_of(daemon, submission->uid) != submission ||
            (lane && *lane && *lane != submission))
            continue;
        if (lane)
            *lane = submission;
        submission->started = true;
        uv_queue_work(daemon->loop, &submission->work, work_on_pool, after);
    }
}

static void finish_waiting(struct daemon *daemon)
{
    for (struct submission **at = &daemon->submissions, *submission; (submission = *at);) {
        if (submission->started) {
            at = &submission->next;
            continue;
        }
        *at = submission->next;
        finish(submission);
    }
}

/* A large one keeps its lane until all of it is read: no two are half read. */
static void leave_lanes(struct submission *submission)
{
    struct daemon *daemon = submission->daemon;

    if (daemon->reads_large == submission && (submission->read || is_over(submission)))
        daemon->reads_large = NULL;
    if (daemon->estimates_costly == submission)
        daemon->estimates_costly = NULL;
}

/* The C library keeps the memory of what a thread has read, until it is told. */
static void give_memory_back(const struct daemon *daemon)
{
    for (const struct submission *submission = daemon->submissions; submission; submission = submission->next)
        if (is_large(submission) || submission->read)
            return;
    malloc_trim(0);
}

static void after(uv_work_t *done, int canceled)
{
    struct submission *submission = done->data;
    struct daemon *daemon = submission->daemon;
    uid_t uid = submission->uid;
    bool was_large = is_large(submission) || daemon->estimates_costly == submission;

    (void)canceled; /* nobody does */
    submission->read = is_read(submission);
    submission->started = false;
    leave_lanes(submission);
    if (is_over(submission) || daemon->stopping) {
        *first_of(daemon, uid) = submission->next;
        finish(submission);
        if (was_large)
            give_memory_back(daemon);
    }
    give_way(daemon, uid);
    if (daemon->stopping)
        finish_waiting(daemon);
    else
        start_waiting(daemon);
}

/* Reading it takes less than waking a thread, and nothing is to be estimated. A text in which a letter is escaped may
 * name what it likes. */
static bool is_quick(const struct submission *submission)
{
    static const char *const models[] = {"\"summary\"", "\"capture\"", "\"hf_config\""};

    if (submission->length > QUICK_BYTES || strstr(submission->body, "\\u00"))
        return false;
    for (size_t i = 0; i < array_size(models); i++)
        for (const char *at = submission->body; (at = strstr(at, models[i])); at++)
            if (strncmp(at + strlen(models[i]), ":null", 5) != 0)
                return false;
    return true;
}

void submission_start(struct daemon *daemon, uid_t uid, const char *body, size_t length, submission_done *done,
                      void *user)
{
    struct submission *submission = xcalloc(1, sizeof *submission);
    bool alone = !*first_of(daemon, uid);

    *submission = (struct submission){.work.data = submission,
                                      .daemon = daemon,
                                      .uid = uid,
                                      .body = body,
                                      .length = length,
                                      .done = done,
                                      .user = user,
                                      .status = 201,
                                      .events_left = REQUEST_EVENTS,
                                      .config = &daemon->config};
    node_machine_profile(daemon->node, &submission->profile);
    *end_of(daemon) = submission;
    if (alone && is_quick(submission) && owners_find(daemon->owners, uid, &submission->owner)) {
        submission->started = true;
        work(&submission->work);
        after(&submission->work, 0);
    } else {
        start_waiting(daemon);
    }
}

/* ---- As it is stored ---- */
