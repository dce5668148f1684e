#include "daemon/view/view_store.h"

#include <errno.h>
#include <string.h>

#include "api/or_null.h"
#include "api/record_json.h"
#include "api/spec_limits.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* The flat members, by name: numbers, and true or false. Those of a run are not there while it is view_never_ran. */
static const struct number {
    const char *name;
    bool of_run; /* a member of view->run */
    size_t offset;
    size_t size;
} numbers[] = {
#define NUMBER(name, of_run, of, member)                                                                               \
    {                                                                                                                  \
        name, of_run, offsetof(struct of, member), sizeof(((struct of *)0)->member)                                    \
    }
#define OF_JOB(member)                        NUMBER(#member, false, job_view, member)
#define OF_RUN(member)                        NUMBER(#member, true, job_view_run, member)
#define VIEW(part, type, member, first, form) OF_##part(member),
#include "daemon/view/view_fields.def"
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) OF_##part(member),
#include "core/job_state.def"
    OF_JOB(state),       OF_RUN(held.at_ns),           OF_RUN(held.bytes), OF_RUN(held.measured_bytes),
    OF_RUN(held.mib_ms), OF_RUN(held.measured_mib_ms),
};

static json_int_t get_number(const struct job_view *view, const struct number *number)
{
    const void *at = (number->of_run ? (const char *)view->run : (const char *)view) + number->offset;

    if (number->size == sizeof(bool))
        return *(const bool *)at;
    return number->size == sizeof(uint32_t) ? (json_int_t) * (const uint32_t *)at : *(const int64_t *)at;
}

static json_t *number_to_json(const struct job_view *view, const struct number *number)
{
    json_int_t value = get_number(view, number);

    return number->size == sizeof(bool) ? json_boolean(value) : json_integer(value);
}

static int set_number(struct job_view *view, const struct number *number, const json_t *json)
{
    const json_t *said = json_object_get(json, number->name);
    json_int_t value = json_is_true(said) ? 1 : json_integer_value(said);
    void *at;

    if (!said)
        return 0; /* it is as at first */
    if (!(number->size == sizeof(bool) ? json_is_boolean(said) : json_is_integer(said)) ||
        (number->size < sizeof(int64_t) && (value < 0 || value > UINT32_MAX)))
        return -EINVAL;
    if (value == get_number(view, number))
        return 0; /* as of any job that was never placed */
    at = (number->of_run ? (char *)job_view_run(view) : (char *)view) + number->offset;
    if (number->size == sizeof(bool))
        *(bool *)at = value;
    else if (number->size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)value;
    else
        *(int64_t *)at = value;
    return 0;
}

/* Parts that are members of records travel as those records. */
static json_t *record_to_json(const struct record *record)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct error err;

    return record_json_write(record, &text, &err) == 0 ? json_string(text.text) : json_null();
}

static int record_from_json(const json_t *value, uint32_t type, struct record *record)
{
    struct error err;

    if (!json_is_string(value) ||
        record_json_read(json_string_value(value), json_string_length(value), record, &err) != 0 ||
        record->type != type)
        return -EINVAL;
    return 0;
}

char *job_view_to_text(const struct job_view *view)
{
    struct record submitted = {.type = RECORD_SUBMITTED, .job = view->id, .submitted = job_view_wants(view)};
    struct record exited = {.type = RECORD_EXITED, .job = view->id, .exited = view->run->exit};
    json_t *json = json_object(), *placements = json_array();
    char *text;

    for (size_t i = 0; i < array_size(numbers); i++)
        if (!numbers[i].of_run || view->run != &view_never_ran)
            json_object_set_new(json, numbers[i].name, number_to_json(view, &numbers[i]));
    json_object_set_new(json, "submitted", record_to_json(&submitted));
    json_object_set_new(json, "exited", view->run->exited ? record_to_json(&exited) : json_null());
    json_object_set_new(json, "user", text_or_null(job_view_user(view)));
    json_object_set_new(json, "message", view->message ? json_string(view->message) : json_null());
    for (uint32_t i = 0; i < view->placement_count; i++)
        json_array_append_new(placements, json_pack("[I, I]", (json_int_t)view->placements[i].gpu,
                                                    (json_int_t)view->placements[i].observed_bytes));
    json_object_set_new(json, "placements", placements);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static int get_placements(struct job_view *view, const json_t *list)
{
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > RECORD_MAX_GPUS)
        return -EINVAL;
    if (count)
        view->placements = xrealloc(view->placements, count, sizeof *view->placements);
    view->placement_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        json_t *pair = json_array_get(list, i);
        json_int_t gpu = json_integer_value(json_array_get(pair, 0)),
                   bytes = json_integer_value(json_array_get(pair, 1));

        if (json_array_size(pair) != 2 || gpu < 0 || gpu > UINT32_MAX || bytes < 0)
            return -EINVAL;
        view->placements[i] = (struct job_placement){.gpu = (uint32_t)gpu, .observed_bytes = bytes};
    }
    return 0;
}

/* Into a view without wants, a user, a message, placements and a run. */
static int get_all(struct job_view *view, const json_t *json)
{
    struct record submitted, exited;
    json_t *exit = json_object_get(json, "exited");
    const char *user = json_string_value(json_object_get(json, "user"));
    int rc = record_from_json(json_object_get(json, "submitted"), RECORD_SUBMITTED, &submitted);

    for (size_t i = 0; i < array_size(numbers) && rc == 0; i++)
        rc = set_number(view, &numbers[i], json);
    if (rc == 0 && exit && !json_is_null(exit))
        rc = record_from_json(exit, RECORD_EXITED, &exited);
    if (rc == 0)
        rc = get_placements(view, json_object_get(json, "placements"));
    if (rc != 0 || view->state >= JOB_STATE_COUNT || !user || view->reservation_source >= SOURCE_COUNT ||
        view->first_reservation_source >= SOURCE_COUNT)
        return -EINVAL;
    job_view_set_wants(view, &submitted.submitted);
    if (exit && !json_is_null(exit)) {
        job_view_run(view)->exited = true;
        job_view_run(view)->exit = exited.exited;
    }
    job_view_set_user(view, user);
    job_view_set_message(view, json_string_value(json_object_get(json, "message")));
    return 0;
}

/* The read value takes the place of the old one, which goes with the other. */
static void exchange_parts(struct job_view *view, struct job_view *read)
{
    struct job_view old = *view;

    *view = *read;
    *read = old;
}

int job_view_from_text(struct job_view *view, const char *text, struct error *err)
{
    json_t *json;
    struct job_view read = *view;
    int rc = json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &(struct json_bounds)SPEC_JSON_BOUNDS, &json, NULL);

    read.wants = NULL;
    read.workload = NULL;
    read.user = NULL;
    read.message = NULL;
    read.placements = NULL;
    read.run = &view_never_ran;
    if (rc == 0)
        rc = get_all(&read, json);
    json_decref(json);
    if (rc == 0) {
        exchange_parts(view, &read);
        job_view_move_stored(view, read.wants->uid, view->wants->uid);
    }
    common_wants_leave(&view->views->wants, read.wants);
    common_texts_leave(&view->views->texts, read.workload);
    common_texts_leave(&view->views->texts, read.user);
    free(read.message);
    free(read.placements);
    job_view_run_free(&read);
    if (rc != 0)
        return error_set(err, EINVAL, "not the state of a job");
    if (job_state_ended(view->state))
        job_view_forget_inputs(view);
    return 0;
}
