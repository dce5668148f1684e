/* How this file works: edit_read() has the members and values that a request names, tried on an empty description of a
 * job. edit_job() puts them into a copy of the job's own (apply), judges that as a submission's is judged, and works
 * out what the job wants now (wants_of). The core gets all of it in one record, and the store the description. */
#include "daemon/edit/edit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/job_field.h"
#include "api/later/begin.h"
#include "api/spec.h"
#include "api/submission_text.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "daemon/engine/engine.h"
#include "daemon/fit.h"
#include "daemon/log.h"
#include "daemon/submit/allowance.h"
#include "daemon/submit/filter.h"
#include "daemon/submit/submission.h"
#include "daemon/view/stored_texts.h"

struct edit {
    json_t *members;
    int32_t priority;
};

void edit_free(struct edit *edit)
{
    if (!edit)
        return;
    json_decref(edit->members);
    free(edit);
}

struct edit *edit_with(const struct edit *edit, const json_t *more)
{
    struct edit *both = xcalloc(1, sizeof *both);

    *both = (struct edit){.members = json_copy(edit->members), .priority = edit->priority};
    json_object_update(both->members, (json_t *)more);
    return both;
}

bool edit_needs_admin(const struct edit *edit)
{
    return edit->priority > 0;
}

static int not_edited(const char *name, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf names = {0};

    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].edited)
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", job_fields[i].name);
    return error_set(err, EINVAL, "'%.40s' cannot be changed: only %s", name, names.text);
}

static int apply(const json_t *members, struct job_spec *spec, struct error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach ((json_t *)members, name, value) {
        const struct job_field *field = job_field_find(name);
        bool before = strcmp(name, "signal_before_ns") == 0; /* a part of the signal */
        int rc =
            field && (field->edited || before) ? job_field_from_json(field, value, spec, err) : not_edited(name, err);
        if (rc)
            return rc;
    }
    return 0;
}

struct edit *edit_read(struct http_request *request)
{
    struct json_bounds bounds = {.values = 256, .depth = 4, .bytes = HTTP_SMALL_BODY_BYTES};
    struct edit *edit = xcalloc(1, sizeof *edit);
    struct job_spec spec;
    struct error err;
    int rc = json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &edit->members, &err);

    job_spec_init(&spec);
    if (rc == 0 && (!json_is_object(edit->members) || json_object_size(edit->members) == 0))
        rc = error_set(&err, EINVAL, "{\"MEMBER\": value, ...} is expected: what is to be changed");
    if (rc == 0)
        rc = apply(edit->members, &spec, &err);
    edit->priority = spec.priority;
    job_spec_release(&spec);
    if (rc == 0)
        return edit;
    edit_free(edit);
    http_reply_error(request, 400, "%s", err.text);
    return NULL;
}

static bool has(const struct edit *edit, const char *member)
{
    return json_object_get(edit->members, member);
}

/* The part of the core's record. */
static int wants_of(const struct daemon *daemon, const struct job_view *view, const struct job_spec *spec,
                    const struct edit *edit, struct record_edited *edited, struct error *err)
{
    struct reason why;
    char text[REASON_TEXT], number[JOB_NUMBER_TEXT];
    int64_t begin_ns = 0;

    edited->wants = job_view_wants(view);
    edited->begin_ns = -1;
    submission_says(spec, &edited->wants);
    if (has(edit, "gpu_memory_bytes"))
        submission_set_request(&daemon->config, spec, &view->common->estimate, &edited->wants);
    if (fit_excluded(daemon->core, spec->exclude_gpu, &edited->wants.excluded_gpus, err))
        return -EINVAL;
    fit_request(daemon->core, &edited->wants);
    if (!core_could_ever_run(daemon->core, &edited->wants, &why))
        return error_set(err, EINVAL, "job %s can never run here then: %s", job_number(view->views, view->id, number),
                         reason_format(&why, nodetime_now_ns(), text));
    if (has(edit, "deadline"))
        edited->wants.deadline_ns = submission_deadline_ns(spec);
    if (!has(edit, "begin"))
        return 0;
    if (spec->begin && begin_parse(spec->begin, nodetime_shown_now_ns(), &begin_ns, err))
        return -EINVAL;
    edited->begin_ns = spec->begin ? nodetime_of_shown_ns(begin_ns) : 0;
    return 0;
}

static int judge(const struct daemon *daemon, const struct job_view *view, struct job_spec *spec,
                 const struct edit *edit, struct record_edited *edited, struct error *err)
{
    int rc = job_spec_check(spec, err);

    if (rc == 0)
        rc = submission_limit_times(&daemon->config, spec, err);
    if (rc == 0)
        rc = submission_check_host(&daemon->config, spec, err);
    return rc ? rc : wants_of(daemon, view, spec, edit, edited, err);
}

static void keep(struct daemon *daemon, struct job_view *view, struct job_spec *spec)
{
    struct owner owner = {.user = (char *)job_view_user(view), .gid = view->gid};
    char *text = submission_to_text(spec, &view->common->estimate, &owner);

    job_view_set_stored(view, strlen(text));
    engine_store_spec(daemon->engine, view->id, text);
    job_view_set_spec(view, spec);
}

int edit_may(const struct job_view *view, struct error *err)
{
    char number[JOB_NUMBER_TEXT];

    if (view->wants->external)
        return error_set(err, EPERM, "job %" PRIu64 " is Slurm's job %" PRId64 ": use scontrol", view->id,
                         view->common->spec->slurm_job),
               409;
    if (view->state != JOB_QUEUED && view->state != JOB_HELD)
        return error_set(err, EPERM, "job %s is %s: only one that waits can be changed",
                         job_number(view->views, view->id, number), job_state_name(view->state)),
               409;
    return 200;
}

json_t *edit_preview(const struct job_view *view, const struct edit *edit)
{
    const struct job_spec before = job_view_spec(view);
    struct job_spec spec = job_spec_copy(&before);
    struct error err;
    json_t *json = NULL;

    if (edit_may(view, &err) == 200 && apply(edit->members, &spec, &err) == 0)
        json = filter_job(&spec);
    job_spec_release(&spec);
    return json;
}

int edit_job(struct daemon *daemon, uid_t uid, struct job_view *view, const struct edit *edit, struct error *err)
{
    struct record input = {.type = RECORD_EDITED, .at_ns = nodetime_now_ns(), .job = view->id};
    const struct job_spec before = job_view_spec(view);
    struct job_spec spec;
    int status = edit_may(view, err);

    if (status != 200)
        return status;
    spec = job_spec_copy(&before);
    if (apply(edit->members, &spec, err) || judge(daemon, view, &spec, edit, &input.edited, err))
        status = 422;
    else if (allowance_take(daemon, uid, 1, err))
        status = 503;
    else if (engine_input(daemon->engine, &input, err))
        status = 409;
    else
        keep(daemon, view, &spec);
    job_spec_release(&spec);
    if (status == 200 && uid != view->wants->uid)
        daemon_log("job %" PRIu64 " of %s: edited by uid %u", view->id, job_view_user(view), (unsigned)uid);
    return status;
}
