/* The administrator's filter: a program that sees each submission once it is read and estimated, and may refuse it or
 * change what its jobs say (the setting submit_filter, docs/admin.md).
 *
 * submission_filter_prepare() makes its input, submission_filter_apply() takes its output; both are work for the pool.
 * submission_filter_start() runs it beside the loop, as nobody, for a few seconds, and a few at a time. A filter that
 * fails refuses: nothing passes it by accident. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/job_field.h"
#include "api/submission_text.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/text/printable.h"
#include "daemon/log.h"
#include "daemon/low_child.h"
#include "daemon/submit/submission_internal.h"

#define FILTERS_MOST  8 /* at a time */
#define FILTER_TIME_S 10
#define FILTER_MEMORY (INT64_C(512) << 20)
#define FILTER_OUTPUT (1 << 20)
#define REFUSAL_BYTES 300

bool submission_filter_is_due(const struct submission *submission)
{
    return submission->status == 201 && submission->config->submit_filter && !submission->filtered;
}

/* Not what is private, nor what is large and known by its estimate. */
static json_t *job_to_json(const struct job_spec *spec)
{
    static const char *const kept_back[] = {"environment", "summary", "capture", "hf_config"};
    json_t *json = job_spec_to_json(spec);

    for (size_t i = 0; i < array_size(kept_back); i++)
        json_object_del(json, kept_back[i]);
    return json;
}

void submission_filter_prepare(struct submission *submission)
{
    json_t *jobs = json_array(), *json;
    char *text;

    for (size_t i = 0; i < submission->count; i++)
        json_array_append_new(jobs, job_to_json(&submission->applicants[i].spec));
    json = json_pack("{s:I, s:s, s:o}", "uid", (json_int_t)submission->uid, "user",
                     submission->owner.user ? submission->owner.user : "", "jobs", jobs);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    free(submission->filter_input);
    submission->filter_input = xasprintf("%s\n", text ? text : "{}");
    free(text);
}

/* ---- Running it ---- */

static void fail(struct submission *submission, const char *why)
{
    submission->status = 503;
    error_set(&submission->err, EAGAIN, "the administrator's filter failed, so nothing was submitted: %s", why);
    error_make_printable(&submission->err);
    daemon_log("submit_filter %s: %s", submission->config->submit_filter, submission->err.text);
}

static void on_ended(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct submission *submission = user;

    submission->filter = NULL;
    submission->filtered = true;
    if (rc)
        fail(submission, err->text);
    else
        submission->filter_output = xstrndup(output, length);
    submission_go_on(submission);
}

void submission_filter_start(struct submission *submission)
{
    static const struct low_child_limits limits = {.what = "filter",
                                                   .too_long = "try again later",
                                                   .too_large = "submit fewer jobs at a time",
                                                   .time_s = FILTER_TIME_S,
                                                   .memory_bytes = FILTER_MEMORY,
                                                   .output_bytes = FILTER_OUTPUT,
                                                   .prompt = true,
                                                   .as_nobody = true};
    char *argv[] = {submission->config->submit_filter, NULL};
    struct error err;
    size_t running = 0;

    for (const struct submission *other = submission->daemon->submissions; other; other = other->next)
        running += other->filter != NULL;
    if (running >= FILTERS_MOST)
        return;
    submission->started = true;
    if (low_child_start(submission->daemon->loop, argv, submission->filter_input, &limits, on_ended, submission,
                        &submission->filter, &err) != 0) {
        submission->filtered = true;
        fail(submission, err.text);
        submission_go_on(submission);
    }
    free_ptr(&submission->filter_input);
}

/* ---- What it says ---- */

static int change(struct submission *submission, struct applicant *applicant, const json_t *changes, struct error *err)
{
    struct job_spec *spec = &applicant->spec;
    const char *name;
    json_t *value;
    int rc = 0;

    json_object_foreach ((json_t *)changes, name, value) {
        const struct job_field *field = job_field_find(name);
        if (!field || !(field->edited || strcmp(name, "signal_before_ns") == 0))
            return error_set(err, EINVAL, "it cannot change '%.40s'", name);
        if ((rc = job_field_from_json(field, value, spec, err)))
            return rc;
    }
    if ((rc = job_spec_check(spec, err)) || (rc = submission_limit_times(submission->config, spec, err)) ||
        (rc = submission_check_host(submission->config, spec, err)))
        return rc;
    applicant->ranked = json_object_get(changes, "priority") != NULL;
    submission_says(spec, &applicant->wants);
    if (json_object_get(changes, "gpu_memory_bytes"))
        submission_set_request(submission->config, spec, &applicant->estimate, &applicant->wants);
    spec->environment = submission->environments[applicant->environment]; /* stored with it */
    free(applicant->text);
    applicant->text = submission_spec_to_text(spec);
    spec->environment = (struct spec_strings){0};
    return 0;
}

static int change_all(struct submission *submission, const json_t *jobs, struct error *err)
{
    if (!json_is_array(jobs) || json_array_size(jobs) != submission->count)
        return error_set(err, EINVAL, "its \"jobs\" are not a list of %zu", submission->count);
    for (size_t i = 0; i < submission->count; i++) {
        const json_t *changes = json_array_get(jobs, i);
        if (json_is_null(changes))
            continue;
        if (!json_is_object(changes))
            return error_set(err, EINVAL, "its \"jobs\" are not objects");
        if (change(submission, &submission->applicants[i], changes, err))
            return -EINVAL;
    }
    return 0;
}

static void refuse(struct submission *submission, const char *why)
{
    submission->status = 403;
    error_set(&submission->err, EPERM, "%.*s", REFUSAL_BYTES, why);
    error_make_printable(&submission->err);
}

void submission_filter_apply(struct submission *submission)
{
    static const struct json_bounds most = {.values = 64 << 10, .depth = 4, .bytes = FILTER_OUTPUT};
    const char *text = submission->filter_output + strspn(submission->filter_output, " \t\r\n");
    const char *refusal = NULL;
    json_t *json = NULL, *jobs = NULL;
    struct error err;

    if (!*text)
        return;
    if (json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &most, &json, &err) != 0)
        fail(submission, err.text);
    else if (json_unpack_ex(json, NULL, JSON_STRICT, "{s?s, s?o}", "refuse", &refusal, "jobs", &jobs) != 0)
        fail(submission, "it does not say {\"refuse\": TEXT} or {\"jobs\": [...]}");
    else if (refusal)
        refuse(submission, refusal);
    else if (jobs && change_all(submission, jobs, &err) != 0)
        fail(submission, err.text);
    json_decref(json);
}
