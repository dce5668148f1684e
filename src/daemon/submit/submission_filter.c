/* Each submission comes by the administrator's filter (filter.h) once it is read and estimated.
 *
 * submission_filter_prepare() makes its input, submission_filter_apply() takes its output; both are work for the pool.
 * submission_filter_start() runs it, a few at a time. A filter that fails refuses: nothing passes it by accident. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/job_field.h"
#include "api/submission_text.h"
#include "base/memory.h"
#include "daemon/submit/filter.h"
#include "daemon/submit/submission_internal.h"

#define FILTERS_MOST 8 /* at a time */

bool submission_filter_is_due(const struct submission *submission)
{
    return submission->status == 201 && submission->config->submit_filter && !submission->filtered;
}

void submission_filter_prepare(struct submission *submission)
{
    json_t *jobs = json_array();

    for (size_t i = 0; i < submission->count; i++)
        json_array_append_new(jobs, filter_job(&submission->applicants[i].spec));
    free(submission->filter_input);
    submission->filter_input = filter_input(submission->uid, submission->owner.user, false, jobs);
}

/* ---- Running it ---- */

static void fail(struct submission *submission, const char *why)
{
    submission->status = filter_failed(submission->daemon, "submitted", why, &submission->err);
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
    struct error err;
    size_t running = 0;

    for (const struct submission *other = submission->daemon->submissions; other; other = other->next)
        running += other->filter != NULL;
    if (running >= FILTERS_MOST)
        return;
    submission->started = true;
    if (filter_start(submission->daemon, submission->filter_input, on_ended, submission, &submission->filter, &err)) {
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

static int change_all(struct submission *submission, const json_t *changes, struct error *err)
{
    const json_t *each;
    size_t i;

    json_array_foreach (changes, i, each)
        if (!json_is_null(each) && change(submission, &submission->applicants[i], each, err))
            return -EINVAL;
    return 0;
}

void submission_filter_apply(struct submission *submission)
{
    CLEANUP(free_ptr) char *refusal = NULL;
    json_t *changes = NULL;
    struct error err;

    if (filter_read(submission->filter_output, submission->count, &refusal, &changes, &err) ||
        change_all(submission, changes, &err))
        fail(submission, err.text);
    else if (refusal)
        submission->status = filter_refused(refusal, &submission->err);
    json_decref(changes);
}
