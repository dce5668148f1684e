/* Brings the texts of an older store to the present words, once. How this file works: while database.c takes its steps,
 * SQL has the function present(TEXT), which goes by the tables below: TEXT is a record, lines of records, or the facts
 * of a job. Nothing else in carma knows an older name, or what a text means that lacks a member. So the
 * load reads strictly. A text that present() cannot read stays as it is, and the load names it as damage.
 *
 * A new member of a record: STORE_PRESENT moves to a new last step of database.c, and `absent` a row unless older
 * records mean 0, false, or "". A new name: `words` gets a row, and database.c the step. Present texts stay as they are
 * by this. */
#include <string.h>

#include "api/record_json.h"
#include "api/spec_limits.h"
#include "base/hash.h"
#include "base/json/json_read.h"
#include "store/store_internal.h"

static const struct {
    const char *was;
    uint32_t is, command;
} types[] = {
    {"trimmed", RECORD_SHRUNK, 0},
    {"state_history", RECORD_STATE_PROFILE, 0},
    {"checkpoint", RECORD_COMMANDED, COMMAND_CHECKPOINT},
    {"suspended", RECORD_COMMANDED, COMMAND_SUSPEND},
    {"resumed", RECORD_COMMANDED, COMMAND_RESUME},
};

/* In order. type: RECORD_NONE: of all, and of the facts of a job. is: NULL: it is gone. */
static const struct {
    uint32_t type;
    const char *was, *is;
} words[] = {
    {RECORD_RECONFIGURED, "mps_one_server", NULL}, /* always false */
    {RECORD_RECONFIGURED, "recovery", "oom_retry"},
    {RECORD_RECONFIGURED, "max_recoveries", "max_retries"},
    {RECORD_RECONFIGURED, "max_recoveries_per_user", "max_retries_per_user"},
    {RECORD_RECONFIGURED, "patience_ns", "starvation_timeout_ns"},
    {RECORD_RECONFIGURED, "trim_ns", "shrink_after_ns"},
    {RECORD_SUBMITTED, "claim_bytes", "request_bytes"},
    {RECORD_SUBMITTED, "claim_source", "request_source"},
    {RECORD_EDITED, "claim_source", "request_source"},
    {RECORD_STATE_JOB, "wanted_bytes", "request_bytes"},
    {RECORD_STATE_JOB, "claim_source", "request_source"},
    {RECORD_STATE_JOB, "claim_from", "reservation_source"},
    {RECORD_STATE_JOB, "believed", "oom_crashes"},
    {RECORD_STATE_JOB, "crash_believed", "crash_is_oom"},
    {RECORD_STATE_JOB, "setbacks", "external_failures"},
    {RECORD_STATE_JOB, "headed_ns", NULL},
    {RECORD_STATE_JOB, "suspended", NULL}, /* of a lease: Slurm's agent tells it again */
    {RECORD_NONE, "foreign_bytes", "unmanaged_bytes"},
    {RECORD_NONE, "claim_bytes", "reserved_bytes"},
    {RECORD_NONE, "claim_source", "reservation_source"},
    {RECORD_NONE, "first_claim_bytes", "first_reserved_bytes"},
    {RECORD_NONE, "first_claim_source", "first_reservation_source"},
    {RECORD_NONE, "culprit", "overuser"},
    {RECORD_NONE, "launches", "attempts"},
    {RECORD_NONE, "recovery", "retry"},
    {RECORD_NONE, "recoveries", "retries"},
    {RECORD_NONE, "recoveries_ns", "retries_ns"},
};

/* What a record means that lacks the member, where that is not 0, false, or "". */
static const struct {
    uint32_t type;
    const char *name;
    int64_t value;
} absent[] = {
    {RECORD_RECONFIGURED, "max_requeues", 100},
    {RECORD_RECONFIGURED, "max_jobs_without_gpu", 32},
    {RECORD_RECONFIGURED, "mps_domain", 1}, /* a GPU's */
    {RECORD_RECONFIGURED, "mps_threads_percent", 100},
    {RECORD_RECONFIGURED, "mps_max_clients", 48},
    {RECORD_STRAYED, "gpu", RECORD_NO_GPU},
    {RECORD_EXITED, "used_bytes", -1},
    {RECORD_EXITED, "failed_gpu", RECORD_NO_GPU},
    {RECORD_LOST, "final", true},
    {RECORD_PLACED, "fence_bytes", -1},
    {RECORD_GAVE_UP, "memory", true},
    {RECORD_SHRUNK, "reservation_source", SOURCE_OBSERVED},
    {RECORD_STATE_PROFILE, "uid", UINT32_MAX},
    {RECORD_STATE_PROFILE, "failed_gpu", RECORD_NO_GPU},
    {RECORD_STATE_MEASURE, "uid", UINT32_MAX},
    {RECORD_STATE_MEASURE, "beside_uid", UINT32_MAX},
    {RECORD_STATE_USER, "share", 1},
    {RECORD_STATE_JOB, "granted_bytes", -1},
    {RECORD_STATE_JOB, "failed_gpu", RECORD_NO_GPU},
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) {RECORD_STATE_JOB, name, absent},
#include "core/job_state.def"
};

/* What jobs have requested: from it follows where an older record has its reservation from. */
struct store_requested {
    struct request {
        json_int_t job, bytes, source;
        UT_hash_handle hh;
    } * all;
    const struct request *last; /* that was noted */
};

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void add(json_t *object, const char *name, json_int_t value)
{
    if (!json_object_get(object, name))
        json_object_set_new(object, name, json_integer(value));
}

static void rename_members(json_t *object, uint32_t type)
{
    for (size_t i = 0; i < array_size(words); i++) {
        json_t *value = json_object_get(object, words[i].was);

        if (!value || (words[i].type != RECORD_NONE && words[i].type != type))
            continue;
        if (words[i].is)
            json_object_set(object, words[i].is, value);
        json_object_del(object, words[i].was);
    }
}

/* ---- Records ---- */

static json_t *absent_value(const struct record_field *field)
{
    int64_t value = 0;

    for (size_t i = 0; i < array_size(absent); i++)
        if (absent[i].type == field->type && strcmp(absent[i].name, field->name) == 0)
            value = absent[i].value;
    return field->kind == FIELD_BOOL        ? json_boolean(value)
           : field->kind == FIELD_TEXT      ? json_string("")
           : field->kind == FIELD_U32_ARRAY ? json_array()
                                            : json_integer(value);
}

static void note_request(struct store_requested *requested, const json_t *record)
{
    json_int_t job = number(record, "job");
    struct request *request;

    HASH_FIND(hh, requested->all, &job, sizeof job, request);
    if (!request) {
        request = xcalloc(1, sizeof *request);
        request->job = job;
        HASH_ADD(hh, requested->all, job, sizeof request->job, request);
    }
    request->bytes = number(record, "request_bytes");
    request->source = number(record, "request_source");
    requested->last = request;
}

/* A reservation that is as requested is from where the request is. */
static json_int_t source_of(const struct request *request, json_int_t reserved_bytes, enum memory_source otherwise)
{
    return request && request->bytes == reserved_bytes ? request->source : (json_int_t)otherwise;
}

static void add_source(const struct store_requested *requested, json_t *record, enum memory_source otherwise)
{
    json_int_t job = number(record, "job");
    const struct request *request;

    HASH_FIND(hh, requested->all, &job, sizeof job, request);
    add(record, "reservation_source", source_of(request, number(record, "reserved_bytes"), otherwise));
}

static uint32_t bring_type(json_t *record, const char *was)
{
    uint32_t type = RECORD_NONE;

    for (size_t i = 0; i < array_size(types); i++) {
        if (strcmp(was, types[i].was) != 0)
            continue;
        if (types[i].is == RECORD_COMMANDED)
            add(record, "command", types[i].command);
        json_object_set_new(record, "type", json_string(record_type_name(types[i].is)));
        return types[i].is;
    }
    while (type < RECORD_TYPE_COUNT && strcmp(was, record_type_name(type)) != 0)
        type++;
    return type;
}

static void bring_record(struct store_requested *requested, json_t *record, const char *was)
{
    uint32_t type = bring_type(record, was);

    rename_members(record, type);
    if (type == RECORD_SUBMITTED || type == RECORD_STATE_JOB)
        note_request(requested, record);
    if (type == RECORD_PLACED || type == RECORD_STATE_JOB)
        add_source(requested, record, SOURCE_LEARNED);
    if (type == RECORD_REQUEUED)
        add_source(requested, record, SOURCE_RAISED);
    if (type == RECORD_STATE_JOB && !number(record, "place")) /* jobs waited in the order of their numbers */
        json_object_set(record, "place", json_object_get(record, "job"));
    for (size_t i = 0; i < record_field_count; i++)
        if (record_fields[i].type == type && !json_object_get(record, record_fields[i].name))
            json_object_set_new(record, record_fields[i].name, absent_value(&record_fields[i]));
}

/* ---- The facts of a job: records are parts of them, and only the figure of the last placement may be there ---- */

static void bring_text(struct store_requested *requested, const char *text, size_t length, struct strbuf *out);

static void bring_part(struct store_requested *requested, json_t *job, const char *name)
{
    const json_t *part = json_object_get(job, name);
    CLEANUP(strbuf_release) struct strbuf text = {0};

    if (!json_is_string(part))
        return;
    bring_text(requested, json_string_value(part), json_string_length(part), &text);
    json_object_set_new(job, name, json_string(text.text));
}

static void add_reservations(const struct request *request, json_t *job)
{
    json_int_t reserved = number(job, "reserved_bytes"), crashes = number(job, "crashes");
    json_int_t source = source_of(request, reserved, crashes ? SOURCE_RAISED : SOURCE_LEARNED);
    bool is_first = number(job, "attempts") && !crashes;

    add(job, "reservation_source", source);
    add(job, "first_reserved_bytes", is_first ? reserved : request->bytes);
    add(job, "first_reservation_source", is_first ? source : request->source);
}

static void bring_job(struct store_requested *requested, json_t *job)
{
    rename_members(job, RECORD_NONE);
    requested->last = NULL;
    bring_part(requested, job, "submitted");
    bring_part(requested, job, "exited");
    if (requested->last)
        add_reservations(requested->last, job);
    if (!json_object_get(job, "victim_of")) {
        add(job, "victim_of", number(job, "overuser"));
        if (json_object_get(job, "fence_bytes"))
            add(job, "process_limit_bytes", number(job, "fence_bytes"));
    }
}

/* ---- Texts ---- */

/* Whether the object can be read, and is in `out` now. */
static bool bring_object(struct store_requested *requested, json_t *object, struct strbuf *out)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    CLEANUP(free_ptr) char *text = NULL;
    struct record record;
    struct error err;

    if (type)
        bring_record(requested, object, type);
    else
        bring_job(requested, object);
    text = json_dumps(object, JSON_COMPACT);
    if (!type && text)
        strbuf_puts(out, text);
    return text && (!type || (record_json_read(text, strlen(text), &record, &err) == 0 &&
                              record_json_write(&record, out, &err) == 0));
}

/* One line after another. */
static void bring_text(struct store_requested *requested, const char *text, size_t length, struct strbuf *out)
{
    for (const char *end = text + length; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = newline ? (size_t)(newline - text) : (size_t)(end - text);
        json_t *object;
        struct error err;

        if (json_read(text, line, JSON_REJECT_DUPLICATES, &(struct json_bounds)SPEC_JSON_BOUNDS, &object, &err) != 0 ||
            !json_is_object(object) || !bring_object(requested, object, out))
            strbuf_append(out, text, line);
        json_decref(object);
        if (newline)
            strbuf_append(out, "\n", 1);
        text += line + (newline != NULL);
    }
}

static void present(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct strbuf out = {0};
    const char *text = (const char *)sqlite3_value_text(values[0]);

    (void)count;
    strbuf_puts(&out, "");
    if (text)
        bring_text(sqlite3_user_data(context), text, (size_t)sqlite3_value_bytes(values[0]), &out);
    sqlite3_result_text64(context, out.text, out.length, free, SQLITE_UTF8);
}

static void free_requested(void *data)
{
    struct store_requested *requested = data;
    struct request *request, *next;

    HASH_ITER (hh, requested->all, request, next) {
        HASH_DEL(requested->all, request);
        free(request);
    }
    free(requested);
}

int store_present_begin(sqlite3 *db)
{
    struct store_requested *requested = xcalloc(1, sizeof *requested);

    return sqlite3_create_function_v2(db, "present", 1, SQLITE_UTF8, requested, present, NULL, NULL, free_requested);
}

void store_present_end(sqlite3 *db)
{
    sqlite3_create_function_v2(db, "present", 1, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
}
