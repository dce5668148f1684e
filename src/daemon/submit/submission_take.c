/* Judging what a request says, and taking its jobs in: all of them or none. This runs on the loop, after the whole
 * request was read.
 *
 * submission_take() asks first whether the request was accepted before. Then check_applicants() has the rules that look
 * at the queue, at the user's other jobs and at the node: a new one belongs there. admit() makes each job an input of
 * the engine. Its answer and what is stored of it follow (store_and_answer). */
#include "daemon/submit/submission_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/submission_text.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/user.h"
#include "core/waiting/depend.h"
#include "daemon/account/past_runs.h"
#include "daemon/engine/engine.h"
#include "daemon/fit.h"
#include "daemon/submit/allowance.h"
#include "daemon/run/runs.h"
#include "daemon/shares.h"
#include "daemon/view/access.h"

/* The last tenth of the queue is for users with few jobs: a user that fills it leaves this part to the others. */
#define KEPT_PART   10
#define LITTLE_PART 100 /* of the queue, or one job */
#define MEMORY_PART 4   /* of what a user's texts may take of the disk */

static int check_queue(struct submission *submission)
{
    const struct core *core = submission->daemon->core;
    size_t jobs = submission_jobs(submission);
    uint64_t unfinished = core_job_count(core), most = submission->daemon->config.max_queued;
    uint64_t little = most > LITTLE_PART ? most / LITTLE_PART : 1, has = core_job_count_of(core, submission->uid);
    uint64_t kept = has + jobs <= little ? 0 : most / KEPT_PART;

    if (unfinished <= most && jobs <= most - unfinished && (!kept || unfinished + jobs <= most - kept))
        return 201;
    if (unfinished > most || jobs > most - unfinished)
        error_set(&submission->err, EAGAIN,
                  "the queue is full: %" PRIu64 " jobs have not ended, max_queued is %" PRIu64
                  " and you submit %zu: try again later",
                  unfinished, most, jobs);
    else
        error_set(&submission->err, EAGAIN,
                  "the queue is nearly full: %" PRIu64 " jobs have not ended, and the last %" PRIu64
                  " of max_queued %" PRIu64 " are for users with at most %" PRIu64 " (you have %" PRIu64
                  " and submit %zu): try again later",
                  unfinished, kept, most, little, has, jobs);
    return 503;
}

/* Of its user's own jobs: it can wait for them, or cancel some. */
static int check_user(struct submission *submission)
{
    const struct core *core = submission->daemon->core;
    size_t jobs = submission_jobs(submission);
    uint32_t most = core_configuration(core)->per_user.max_queued, has = core_job_count_of(core, submission->uid);

    if (most == 0 || (has <= most && jobs <= most - has))
        return 201;
    error_set(&submission->err, EBUSY,
              "you have %" PRIu32 " unfinished jobs and submit %zu, a user may have %" PRIu32
              ": wait until some have ended, or cancel some",
              has, jobs, most);
    return 409;
}

/* What carma's disk and memory keep of him: as many jobs as there are may each have megabytes. What this request adds
 * to memory is not known yet: he may have it beyond the bound. */
static int check_texts(struct submission *submission)
{
    const struct views *views = &submission->daemon->views;
    int64_t most = submission->daemon->config.max_texts_per_user, more = 0;
    const struct user *user = user_find(submission->daemon->core, submission->uid);
    int64_t has = stored_texts_of(views, submission->uid), holds = held_texts_of(views, submission->uid);
    char had[UNITS_TEXT], added[UNITS_TEXT], may[UNITS_TEXT];

    for (size_t i = 0; i < submission->count; i++)
        more += (int64_t)strlen(submission->applicants[i].text) * submission->applicants[i].jobs;
    holds += user ? (int64_t)(user->dependencies * sizeof(struct dependency)) : 0;
    if (most == 0 || (has + more <= most && holds <= most / MEMORY_PART))
        return 201;
    if (has + more <= most)
        error_set(&submission->err, EDQUOT,
                  "the unlike descriptions of your jobs take %s of carmad's memory, a user may have %s (a quarter of "
                  "max_texts_per_user): wait until some have ended or cancel some, or submit with equal environments",
                  format_bytes(holds, had), format_bytes(most / MEMORY_PART, may));
    else
        error_set(
            &submission->err, EDQUOT,
            "the descriptions of your jobs take %s of carma's disk and you submit %s, a user may have %s "
            "(max_texts_per_user): wait until some have ended or cancel some, or submit with a smaller environment",
            format_bytes(has, had), format_bytes(more, added), format_bytes(most, may));
    return 503;
}

static int check_dependencies(struct submission *submission)
{
    CLEANUP(free_ptr) struct awaited_name *before = xcalloc(submission->count, sizeof *before);
    int rc = 0;

    for (size_t i = 0; i < submission->count && rc == 0; i++) {
        const struct applicant *applicant = &submission->applicants[i];
        rc = dependencies_judge(&submission->dependencies, submission->daemon, &applicant->spec, submission->uid,
                                applicant->jobs, before, i, &submission->err);
        before[i] = (struct awaited_name){.name = applicant->spec.name, .jobs = applicant->jobs};
    }
    return rc == -E2BIG ? 413 : rc ? 422 : 201;
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
        if (fit_excluded(submission->daemon->core, applicant->spec.exclude_gpu, &applicant->wants.excluded_gpus,
                         &submission->err))
            return 422;
        fit_request(submission->daemon->core, &applicant->wants);
        if (applicant->spec.priority > 0 && !applicant->ranked &&
            access_view_of(submission->uid, (uid_t)-1) != ACCESS_ALL) {
            error_set(&submission->err, EPERM,
                      "job '%s': priority %" PRId32 " is above 0: an administrator gives such (carma edit ID "
                      "priority=N); say 0 or below",
                      applicant->spec.name, applicant->spec.priority);
            return 403;
        }
        if (job_spec_asks_for_capture(&applicant->spec) &&
            submission->daemon->config.auto_capture == AUTO_CAPTURE_OFF) {
            error_set(&submission->err, EINVAL,
                      "job '%s': the setting auto_capture is off here: give the file of carma.capture, not 'auto'",
                      applicant->spec.name);
            return 422;
        }
        if (applicant->spec.container && submission->daemon->config.container == CONTAINER_OFF) {
            error_set(&submission->err, EINVAL, "job '%s': the setting container is off here: leave --container out",
                      applicant->spec.name);
            return 422;
        }
        if (!core_could_ever_run(submission->daemon->core, &applicant->wants, &why)) {
            error_set(&submission->err, EINVAL, "job '%s' can never run here: %s", applicant->spec.name,
                      reason_format(&why, nodetime_now_ns(), text));
            return 422;
        }
    }
    status = check_dependencies(submission);
    if (status == 201 && !submission->judged &&
        allowance_take(submission->daemon, submission->uid,
                       submission_jobs(submission) + submission->dependencies.count, &submission->err) != 0)
        status = 503;
    return status;
}

static struct job_view *add_first(struct submission *submission, uint64_t id, struct applicant *applicant)
{
    struct job_view *view = views_add(&submission->daemon->views, id, &applicant->spec, &applicant->estimate);

    job_view_set_environment(view, &submission->environments[applicant->environment]);
    job_view_set_user(view, submission->owner.user);
    view->gid = submission->owner.gid;
    return view;
}

/* `first`: of its array; NULL: it is that one. */
static struct job_view *admit(struct submission *submission, struct applicant *applicant, struct job_view *first)
{
    struct daemon *daemon = submission->daemon;
    struct record input = {.type = RECORD_SUBMITTED, .at_ns = nodetime_now_ns(), .job = daemon->views.last_id + 1};
    struct job_view *view;

    view = first ? views_add_like(&daemon->views, input.job, first) : add_first(submission, input.job, applicant);
    view->hidden = true;
    input.submitted = applicant->wants;
    shares_tell(daemon, applicant->wants.uid, submission->owner.user);
    engine_input(daemon->engine, &input, NULL);
    dependencies_tell(&submission->dependencies, daemon, view);
    return first ? first : view;
}

static void take_in_all(struct submission *submission, struct applicant *applicant)
{
    struct daemon *daemon = submission->daemon;
    struct job_view *first = NULL;

    past_runs_correct(daemon->past_runs, applicant->wants.uid, &applicant->estimate);
    applicant->wants.smact_permille = applicant->estimate.smact_permille;
    if (applicant->spec.array)
        applicant->wants.array = daemon->views.last_id + 1;
    for (uint32_t i = 0; i < applicant->jobs; i++)
        first = admit(submission, applicant, first);
}

/* What can be said already: an array, or NULL. */
static json_t *warnings_of(const struct daemon *daemon, const struct job_view *view)
{
    const struct job_spec *spec = view->common->spec;
    const char *gap = runs_host_limits_gap(daemon->runs, spec);
    bool for_mps = spec->mps_threads_percent > 0 || spec->mps_memory_limit_bytes > 0;
    int64_t deadline_ns = view->wants->deadline_ns, left_ns = deadline_ns - nodetime_now_ns();
    json_t *warnings = json_array();

    if (deadline_ns && (left_ns < 0 || left_ns < view->wants->time_limit_ns))
        json_array_append_new(warnings, json_sprintf("it is given up, as it could not end before its deadline %s: say "
                                                     "a later --deadline%s",
                                                     spec->deadline, left_ns > 0 ? ", or a shorter --time" : ""));

    if (gap)
        json_array_append_new(warnings,
                              json_sprintf("--memory and --cpus are not in force here: %s (carma doctor)", gap));
    if (for_mps && *daemon->no_mps)
        json_array_append_new(
            warnings, json_sprintf("--mps-threads and --mps-memory-limit are not in force here: %s", daemon->no_mps));
    if (json_array_size(warnings))
        return warnings;
    json_decref(warnings);
    return NULL;
}

/* Of a job, or of an array by its first. */
static json_t *answer_of(const struct daemon *daemon, uint64_t job, const struct job_view *view)
{
    return json_pack("{s:I, s:o, s:o, s:o*}", "id", (json_int_t)job, "array",
                     view ? job_view_array_to_json(view) : json_null(), "estimate",
                     view ? job_view_estimate_to_json(view) : json_null(), "warnings",
                     view ? warnings_of(daemon, view) : NULL);
}

/* Data that is only stored and answered, and then freed, comes after the lasting data of all of them: the heap has no
 * holes. */
static json_t *store_and_answer(struct submission *submission, uint64_t first)
{
    struct daemon *daemon = submission->daemon;
    json_t *jobs = json_array();
    uint64_t job = first;

    for (size_t i = 0; i < submission->count; i++) {
        const struct applicant *applicant = &submission->applicants[i];
        struct job_view *view = views_find(&daemon->views, job);
        char *text = submission_join(applicant->text, &view->common->estimate, &submission->owner);
        size_t length = strlen(text);
        json_array_append_new(jobs, answer_of(daemon, job, view));
        for (uint32_t k = 0; k < applicant->jobs; k++, job++) {
            job_view_set_stored(views_find(&daemon->views, job), length);
            engine_store_spec(daemon->engine, job, text);
        }
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
                                          .count = (uint32_t)submission_jobs(submission),
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
        if (!view || !view->wants->array || view->wants->array == job)
            json_array_append_new(*jobs, answer_of(submission->daemon, job, view));
    }
    return 201;
}

/* A submission that was accepted before is not looked at again: the queue may be full by now, or the settings others.
 */
void submission_take(struct submission *submission, json_t **jobs)
{
    struct daemon *daemon = submission->daemon;
    uint64_t first = daemon->views.last_id + 1;
    const struct store_request *request = *submission->request_id && !submission->judged
                                              ? repeats_find(daemon->repeats, submission->uid, submission->request_id)
                                              : NULL;

    if (request) {
        submission->status = answer_again(submission, request, jobs);
        return;
    }
    if (submission->status == 201)
        submission->status = check_applicants(submission);
    if (submission->status != 201)
        return;
    if (submission->judged) {
        *jobs = json_array();
        return;
    }
    if (*submission->request_id)
        remember(submission, first);
    for (size_t i = 0; i < submission->count; i++)
        take_in_all(submission, &submission->applicants[i]);
    *jobs = store_and_answer(submission, first);
}
