/* What a request says, and what its jobs will need. All of it runs on a thread of the pool, or on the loop where
 * submission.c knows that it takes less than waking a thread.
 *
 * submission_read() does one turn. The first one counts the request and takes it apart (begin). The following ones read
 * its jobs one by one (read_job), as many as TURN_EVENTS allow. A job is complete once its need is known: what
 * placement goes by is in its `wants` then (set_wants), and what is stored in its `text`. A costly estimate gets a turn
 * of its own after all jobs were read (estimate_costly). A rule for one job's fields belongs to read_applicant(); one
 * that looks at the queue or at other jobs belongs to submission_take.c. */
#include "daemon/submit/submission_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/array.h"
#include "api/later/begin.h"
#include "api/submission_text.h"
#include "api/workload_key.h"
#include "base/digest.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"

/* What one turn does at most, some 20 ms, and what a model costs beside its events. A model that takes more than a turn
 * is a costly one. */
#define TURN_EVENTS  50000
#define MODEL_EVENTS 1000

bool submission_is_read(const struct submission *submission)
{
    return submission->piece_count && submission->count == submission->piece_count;
}

size_t submission_jobs(const struct submission *submission)
{
    size_t jobs = 0;

    for (size_t i = 0; i < submission->count; i++)
        jobs += submission->applicants[i].jobs;
    return jobs;
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
void submission_set_request(const struct config *config, const struct job_spec *spec,
                            const struct job_estimate *estimate, struct record_submitted *wants)
{
    int64_t recorded = recorded_figure(config, spec);

    wants->request_bytes = -1;
    wants->request_source = SOURCE_UNKNOWN;
    if (spec->gpus == 0)
        return;
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

/* -1: the job does not say it. */
static int64_t said(int64_t value)
{
    return value < 0 ? 0 : value;
}

/* With zeros behind it: equal wants are equal bytes. Its length was checked with the field. */
static void say_words(char *to, size_t room, const char *words)
{
    memset(to, 0, room);
    memcpy(to, words ? words : "", words ? strnlen(words, room - 1) : 0);
}

void submission_says(const struct job_spec *spec, struct record_submitted *wants)
{
    wants->share = spec->share ? share_mode_find(spec->share) : SHARE_ANY;
    wants->priority = spec->priority;
    wants->attached = spec->attach != NULL;
#define SAID(member, type) wants->member = (type)said((int64_t)spec->member);
#define WORKED_OUT(member, type)
#define WANT(type, member, kind, from) from(member, type)
#define WORDS(member, size)            say_words(wants->member, size, spec->member);
#include "core/wants.def"
#undef SAID
#undef WORKED_OUT
}

int64_t submission_deadline_ns(const struct job_spec *spec)
{
    int64_t shown_ns, deadline_ns;

    if (!spec->deadline || begin_parse(spec->deadline, nodetime_shown_now_ns(), &shown_ns, NULL) != 0)
        return 0;
    deadline_ns = nodetime_of_shown_ns(shown_ns);
    return deadline_ns > 0 ? deadline_ns : 1; /* 0 is none, and a clock that was set may have gone below it */
}

static void set_wants(const struct config *config, const struct job_spec *spec, const struct job_estimate *estimate,
                      uid_t uid, struct record_submitted *wants)
{
    struct array_words words;

    *wants = (struct record_submitted){.uid = uid, .smact_permille = estimate->smact_permille};
    submission_says(spec, wants);
    submission_set_request(config, spec, estimate, wants);
    wants->deadline_ns = submission_deadline_ns(spec);
    if (spec->array && array_parse(spec->array, &words, NULL) == 0)
        wants->array_most = words.most < words.jobs ? words.most : 0;
    workload_key(spec, uid, wants->workload);
}

/* Their content is in the estimate and the key: nothing needs them again. */
static void drop_texts(struct job_spec *spec)
{
    if (spec->capture && spec->capture_name && strcmp(spec->capture_name, SPEC_CAPTURE_AUTO) == 0) {
        free(spec->capture_name); /* that word asks for a capture: a file of that name needs its folder */
        spec->capture_name = xstrdup("./" SPEC_CAPTURE_AUTO);
    }
    free_ptr(&spec->summary);
    free_ptr(&spec->capture);
    free_ptr(&spec->hf_config);
    free_ptr(&spec->lengths);
}

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
    const char *const texts[] = {spec->summary,      spec->capture,        spec->hf_config,   spec->summary_name,
                                 spec->capture_name, spec->hf_config_name, spec->optimizer,   spec->precision,
                                 spec->method,       spec->lengths,        spec->lengths_name};
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

/* As asked; where nothing is asked the usual limit, or the longest one. */
static int limit_time(int64_t usual_ns, int64_t most_ns, const char *option, const char *setting, int64_t *limit_ns,
                      struct error *err)
{
    char asked[UNITS_TEXT], most[UNITS_TEXT];

    if (*limit_ns < 0 && (usual_ns || most_ns))
        *limit_ns = usual_ns && (!most_ns || usual_ns < most_ns) ? usual_ns : most_ns;
    if (!most_ns || *limit_ns <= most_ns)
        return 0;
    return error_set(err, EINVAL, "%s: %s is more than one job may take here, %s (%s): ask for less", option,
                     format_duration(*limit_ns, asked), format_duration(most_ns, most), setting);
}

int submission_limit_times(const struct config *config, struct job_spec *spec, struct error *err)
{
    bool sat_at = spec->interactive && config->idle_limit_interactive_ns;
    int64_t idle_ns = sat_at ? config->idle_limit_interactive_ns : config->idle_limit_default_ns;
    int rc = limit_time(config->time_limit_default_ns, config->time_limit_max_ns, "--time", "time_limit_max",
                        &spec->time_limit_ns, err);

    return rc ? rc
              : limit_time(idle_ns, config->idle_limit_max_ns, "--idle-limit", "idle_limit_max", &spec->idle_limit_ns,
                           err);
}

int submission_check_host(const struct config *config, const struct job_spec *spec, struct error *err)
{
    int rc = check_host_memory(config, spec, err);

    return rc ? rc : check_cpus(spec, err);
}

/* Of all its arrays together, a request may have as many jobs as one array. */
static int count_jobs(struct submission *submission, struct applicant *applicant)
{
    struct array_words words;
    size_t jobs;

    applicant->jobs = 1;
    if (applicant->spec.array && array_parse(applicant->spec.array, &words, NULL) == 0)
        applicant->jobs = words.jobs;
    jobs = submission_jobs(submission);
    if (jobs <= ARRAY_MAX_JOBS)
        return 201;
    error_set(&submission->err, E2BIG, "%zu jobs at once are too many, arrays' jobs counted: submit at most %d", jobs,
              ARRAY_MAX_JOBS);
    return 413;
}

static int read_applicant(struct submission *submission, const json_t *json, struct applicant *applicant, int64_t *turn)
{
    const struct config *config = submission->config;
    struct job_spec *spec = &applicant->spec;
    struct error *err = &submission->err;
    int status;

    if (job_spec_from_json(json, spec, err) != 0 || submission_limit_times(config, spec, err) != 0 ||
        submission_check_host(config, spec, err) != 0)
        return 400;
    if (spec->engine || spec->cluster || spec->slurm_job >= 0 || spec->slurm_restart >= 0 || spec->slurm_node) {
        error_set(err, EINVAL, "engine, cluster and slurm_... are what carma says of a lease: leave them out");
        return 400;
    }
    if ((status = count_jobs(submission, applicant)) != 201)
        return status;
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

/* Which of several jobs it is. */
static void name_refused(struct submission *submission, size_t number)
{
    if (submission->piece_count > 1)
        error_prefix(&submission->err, "job %zu of the request", number);
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
        name_refused(submission, submission->count);
    return status;
}

/* As many as a turn may cost. */
static int read_jobs(struct submission *submission)
{
    int64_t turn = TURN_EVENTS;
    int status = 201;

    while (!submission_is_read(submission) && status == 201 && turn > 0)
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
        name_refused(submission, submission->completed + 1);
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
void submission_read(struct submission *submission)
{
    if (submission_is_read(submission)) {
        submission->status = estimate_costly(submission);
    } else {
        submission->status = submission->piece_count ? 201 : begin(submission);
        if (submission->status == 201)
            submission->status = read_jobs(submission);
    }
    if (submission_is_read(submission))
        skip_completed(submission);
}
