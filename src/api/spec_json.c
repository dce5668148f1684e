/* A job's specification as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/job_field.h"
#include "api/spec.h"
#include "base/memory.h"

static json_t *from_known(int64_t value)
{
    return value == -1 ? json_null() : json_integer(value);
}

json_t *job_field_to_json(const struct job_field *field, const struct job_spec *spec)
{
    const void *at = job_field_at(field, spec);
    json_t *json = NULL;

    switch (job_field_kind(field)) {
    case KIND_TEXT:
        json = *(char *const *)at ? json_string(*(char *const *)at) : json_null();
        break;
    case KIND_LIST:
        json = json_array();
        for (size_t i = 0; i < ((const struct spec_strings *)at)->count; i++)
            json_array_append_new(json, json_string(((const struct spec_strings *)at)->items[i]));
        break;
    case KIND_BOOL:
        json = json_boolean(*(const bool *)at);
        break;
    case KIND_U32:
        json = json_integer(*(const uint32_t *)at);
        break;
    case KIND_I32:
        json = json_integer(*(const int32_t *)at);
        break;
    case KIND_I64:
        json = from_known(*(const int64_t *)at);
        break;
    }
    return json;
}

static json_t *to_json(const struct job_spec *spec, bool all)
{
    json_t *json = json_object(), *recorded = json_object();

    for (size_t i = 0; i < job_field_count; i++)
        if (all || job_field_is_said(&job_fields[i], spec))
            json_object_set_new(json, job_fields[i].name, job_field_to_json(&job_fields[i], spec));
    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        if (all || spec->recorded_bytes[i] != -1)
            json_object_set_new(recorded, spec_recorded_names[i], from_known(spec->recorded_bytes[i]));
    if (all || json_object_size(recorded))
        json_object_set(json, "recorded_bytes", recorded);
    json_decref(recorded);
    return json;
}

json_t *job_spec_to_json(const struct job_spec *spec)
{
    return to_json(spec, true);
}

json_t *job_spec_said_to_json(const struct job_spec *spec)
{
    return to_json(spec, false);
}

/* The text of a JSON string; NULL with an error when it is not a string, or hides a NUL. */
static const char *string_value(const char *name, const json_t *json, struct error *err)
{
    if (!json_is_string(json)) {
        error_set(err, EINVAL, "%s is not a string", name);
        return NULL;
    }
    if (strlen(json_string_value(json)) != json_string_length(json)) {
        error_set(err, EINVAL, "%s holds a NUL character: remove it", name);
        return NULL;
    }
    return json_string_value(json);
}

static int read_integer(const char *name, const json_t *json, int64_t *value, struct error *err)
{
    if (!json_is_integer(json))
        return error_set(err, EINVAL, "%s is not a whole number", name);
    /* -1 stands for "not said" inside; on the wire that is null */
    if (json_integer_value(json) < 0)
        return error_set(err, EINVAL, "%s %" JSON_INTEGER_FORMAT " is negative: leave it out if it is not known", name,
                         json_integer_value(json));
    *value = json_integer_value(json);
    return 0;
}

static int strings_from_json(const struct job_field *field, const json_t *json, struct spec_strings *strings,
                             struct error *err)
{
    size_t index;
    const json_t *item;

    if (!json_is_array(json))
        return error_set(err, EINVAL, "%s is not an array of strings", field->name);
    if (json_array_size(json) > (size_t)field->high)
        return error_set(err, EINVAL, "%s has too many entries: %zu, at most %" PRId64, field->name,
                         json_array_size(json), field->high);
    json_array_foreach (json, index, item) {
        const char *text = string_value(field->name, item, err);
        if (!text)
            return -EINVAL;
        spec_strings_add(strings, text);
    }
    return 0;
}

static int field_from_json(const struct job_field *field, const json_t *json, struct job_spec *spec, struct error *err)
{
    void *at = job_field_at(field, spec);
    const char *text;
    int64_t number = 0;
    int rc;

    switch (job_field_kind(field)) {
    case KIND_TEXT:
        text = string_value(field->name, json, err);
        if (!text)
            return -EINVAL;
        *(char **)at = xstrdup(text);
        break;
    case KIND_LIST:
        return strings_from_json(field, json, at, err);
    case KIND_BOOL:
        if (!json_is_boolean(json))
            return error_set(err, EINVAL, "%s is neither true nor false", field->name);
        *(bool *)at = json_is_true(json);
        break;
    case KIND_U32: /* the range is checked before it is narrowed */
        if ((rc = read_integer(field->name, json, &number, err)) ||
            (rc = spec_check_number(field->name, number, field->low, field->high, err)))
            return rc;
        *(uint32_t *)at = (uint32_t)number;
        break;
    case KIND_I32:
        if (!json_is_integer(json))
            return error_set(err, EINVAL, "%s is not a whole number", field->name);
        if ((rc = spec_check_number(field->name, json_integer_value(json), field->low, field->high, err)))
            return rc;
        *(int32_t *)at = (int32_t)json_integer_value(json);
        break;
    case KIND_I64:
        return read_integer(field->name, json, at, err);
    }
    return 0;
}

int job_field_from_json(const struct job_field *field, const json_t *json, struct job_spec *spec, struct error *err)
{
    struct job_spec nothing;

    if (job_field_kind(field) == KIND_LIST)
        return error_set(err, EINVAL, "%s is a list", field->name);
    job_spec_init(&nothing);
    if (job_field_kind(field) == KIND_TEXT)
        free_ptr(job_field_at(field, spec));
    else
        memcpy(job_field_at(field, spec), job_field_at(field, &nothing), job_field_size(field));
    return json_is_null(json) ? 0 : field_from_json(field, json, spec, err);
}

/* A name from outside, fit for a message. */
static const char *shown(const char *name, char text[static 41])
{
    size_t i;

    for (i = 0; i < 40 && name[i]; i++)
        text[i] = (unsigned char)name[i] < 0x20 || (unsigned char)name[i] >= 0x7f ? '?' : name[i];
    text[i] = '\0';
    return text;
}

static int unknown_member(const char *where, const char *name, struct error *err)
{
    char text[41];

    return error_set(err, EINVAL, "unknown member '%s' of %s: remove it or correct its name", shown(name, text), where);
}

static int recorded_from_json(const json_t *json, struct job_spec *spec, struct error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(json))
        return error_set(err, EINVAL, "recorded_bytes is not an object");
    json_object_foreach ((json_t *)json, name, value) {
        size_t i = 0;
        int rc;
        while (i < SPEC_RECORDED_COUNT && strcmp(spec_recorded_names[i], name) != 0)
            i++;
        if (i == SPEC_RECORDED_COUNT)
            return unknown_member("recorded_bytes", name, err);
        if (!json_is_null(value) && (rc = read_integer(spec_recorded_names[i], value, &spec->recorded_bytes[i], err)))
            return rc;
    }
    return 0;
}

static int object_from_json(const json_t *json, struct job_spec *spec, struct error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(json))
        return error_set(err, EINVAL, "the job is not a JSON object");
    json_object_foreach ((json_t *)json, name, value) {
        size_t i = 0;
        bool recorded = strcmp(name, "recorded_bytes") == 0;
        int rc;
        while (i < job_field_count && strcmp(job_fields[i].name, name) != 0)
            i++;
        if (i == job_field_count && !recorded)
            return unknown_member("the job", name, err);
        if (json_is_null(value))
            continue;
        rc = recorded ? recorded_from_json(value, spec, err) : field_from_json(&job_fields[i], value, spec, err);
        if (rc)
            return rc;
    }
    return job_spec_check(spec, err);
}

int job_spec_from_json(const json_t *json, struct job_spec *spec, struct error *err)
{
    int rc;

    job_spec_init(spec);
    rc = object_from_json(json, spec, err);
    if (rc)
        job_spec_release(spec);
    return rc;
}
