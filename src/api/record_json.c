#include "api/record_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"

/* The members that every record has, before those of its type. */
#define COMMON_MEMBERS 3

/* Lists of a record have a number for each GPU. */
static const struct json_bounds bounds = {.values = 4096, .depth = 8, .bytes = 64 << 10};

static const void *field_at(const struct record *record, const struct record_field *field)
{
    return (const char *)record + field->offset;
}

static void put_u64(struct strbuf *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    strbuf_append(out, digits + at, sizeof digits - at);
}

static void put_i64(struct strbuf *out, int64_t value)
{
    if (value < 0)
        strbuf_append(out, "-", 1);
    put_u64(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static void put_name(struct strbuf *out, const char *name)
{
    strbuf_append(out, ",\"", 2);
    strbuf_puts(out, name);
    strbuf_append(out, "\":", 2);
}

/* How many bytes the UTF-8 character at `text` has; 0 where there is none (RFC 3629: no surrogates, no overlong forms,
 * nothing above U+10FFFF). A NUL byte ends every check below, so nothing past the text's end is read. */
static size_t utf8_length(const unsigned char *text)
{
    unsigned low = 0x80, high = 0xbf;
    size_t length, i;

    if (text[0] < 0x80)
        return 1;
    if (text[0] >= 0xc2 && text[0] <= 0xdf)
        length = 2;
    else if (text[0] >= 0xe0 && text[0] <= 0xef)
        length = 3;
    else if (text[0] >= 0xf0 && text[0] <= 0xf4)
        length = 4;
    else
        return 0;
    if (text[0] == 0xe0)
        low = 0xa0;
    else if (text[0] == 0xed)
        high = 0x9f;
    else if (text[0] == 0xf0)
        low = 0x90;
    else if (text[0] == 0xf4)
        high = 0x8f;
    if (text[1] < low || text[1] > high)
        return 0;
    for (i = 2; i < length; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return 0;
    return length;
}

/* Only the characters that JSON requires are escaped, and always in the same way. */
static bool put_text(struct strbuf *out, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text;

    strbuf_append(out, "\"", 1);
    while (*at) {
        size_t length = utf8_length(at);

        if (!length)
            return false;
        if (*at == '"' || *at == '\\')
            strbuf_append(out, "\\", 1);
        if (*at < 0x20) {
            char escape[6] = {'\\', 'u', '0', '0', hex[*at >> 4], hex[*at & 15]};
            strbuf_append(out, escape, sizeof escape);
        } else {
            strbuf_append(out, at, length);
        }
        at += length;
    }
    strbuf_append(out, "\"", 1);
    return true;
}

static int put_field(struct strbuf *out, const struct record *record, const struct record_field *field, uint32_t count,
                     struct error *err)
{
    const void *value = field_at(record, field);
    uint32_t i;

    put_name(out, field->name);
    switch (field->kind) {
    case FIELD_BOOL:
        strbuf_puts(out, *(const bool *)value ? "true" : "false");
        return 0;
    case FIELD_U32:
        put_u64(out, *(const uint32_t *)value);
        return 0;
    case FIELD_I32:
        put_i64(out, *(const int32_t *)value);
        return 0;
    case FIELD_U64:
        put_u64(out, *(const uint64_t *)value);
        return 0;
    case FIELD_I64:
        put_i64(out, *(const int64_t *)value);
        return 0;
    case FIELD_TEXT:
        if (!memchr(value, '\0', field->size))
            return error_set(err, EINVAL, "record %s: %s does not end within %zu bytes: shorten it",
                             record_type_name(record->type), field->name, field->size - 1);
        if (!put_text(out, value))
            return error_set(err, EINVAL, "record %s: %s is not UTF-8", record_type_name(record->type), field->name);
        return 0;
    case FIELD_U32_ARRAY:
        if (count > field->size)
            return error_set(err, EINVAL, "record %s: %s has %" PRIu32 " elements, at most %zu are possible",
                             record_type_name(record->type), field->name, count, field->size);
        strbuf_append(out, "[", 1);
        for (i = 0; i < count; i++) {
            if (i)
                strbuf_append(out, ",", 1);
            put_u64(out, ((const uint32_t *)value)[i]);
        }
        strbuf_append(out, "]", 1);
        return 0;
    }
    return error_set(err, EINVAL, "record %s: %s is of no known kind", record_type_name(record->type), field->name);
}

static int put_record(const struct record *record, struct strbuf *out, struct error *err)
{
    uint32_t previous = 0;
    size_t i;
    int rc;

    if (record->type == RECORD_NONE || record->type >= RECORD_TYPE_COUNT)
        return error_set(err, EINVAL, "record type %" PRIu32 " is not known", record->type);
    if (record->job > INT64_MAX)
        return error_set(err, EINVAL, "record %s: job %" PRIu64 " is out of range", record_type_name(record->type),
                         record->job);
    strbuf_puts(out, "{\"type\":\"");
    strbuf_puts(out, record_type_name(record->type));
    strbuf_puts(out, "\",\"at_ns\":");
    put_i64(out, record->at_ns);
    put_name(out, "job");
    put_u64(out, record->job);
    for (i = 0; i < record_field_count; i++) {
        const struct record_field *field = &record_fields[i];

        if (field->type != record->type)
            continue;
        rc = put_field(out, record, field, previous, err);
        if (rc < 0)
            return rc;
        previous = field->kind == FIELD_U32 ? *(const uint32_t *)field_at(record, field) : 0;
    }
    strbuf_append(out, "}", 1);
    return 0;
}

int record_json_write(const struct record *record, struct strbuf *out, struct error *err)
{
    size_t before = out->length;
    int rc = put_record(record, out, err);

    if (rc < 0 && out->text) {
        out->length = before;
        out->text[before] = '\0';
    }
    return rc;
}

static int get_integer(const json_t *value, const char *type, const char *name, int64_t low, int64_t high,
                       int64_t *number, struct error *err)
{
    if (!value)
        return error_set(err, EINVAL, "record %s: \"%s\" is missing", type, name);
    if (!json_is_integer(value))
        return error_set(err, EINVAL, "record %s: \"%s\" must be a whole number", type, name);
    *number = json_integer_value(value);
    if (*number < low || *number > high)
        return error_set(err, EINVAL, "record %s: \"%s\" is %" PRId64 ", must be from %" PRId64 " to %" PRId64, type,
                         name, *number, low, high);
    return 0;
}

static int get_array(const json_t *value, const char *type, const struct record_field *field, uint32_t count,
                     uint32_t *elements, struct error *err)
{
    int64_t number = 0;
    size_t i;
    int rc;

    if (!json_is_array(value))
        return error_set(err, EINVAL, "record %s: \"%s\" must be an array", type, field->name);
    if (json_array_size(value) != count || count > field->size)
        return error_set(err, EINVAL,
                         "record %s: \"%s\" has %zu elements, must have the %" PRIu32
                         " that are said before it and at most %zu",
                         type, field->name, json_array_size(value), count, field->size);
    for (i = 0; i < count; i++) {
        rc = get_integer(json_array_get(value, i), type, field->name, 0, UINT32_MAX, &number, err);
        if (rc < 0)
            return rc;
        elements[i] = (uint32_t)number;
    }
    return 0;
}

static int get_field(const json_t *object, const char *type, const struct record_field *field, uint32_t count,
                     struct record *record, struct error *err)
{
    const json_t *value = json_object_get(object, field->name);
    void *to = (char *)record + field->offset;
    int64_t number = 0;
    int rc = 0;

    if (!value)
        return error_set(err, EINVAL, "record %s: \"%s\" is missing", type, field->name);
    switch (field->kind) {
    case FIELD_BOOL:
        if (!json_is_boolean(value))
            return error_set(err, EINVAL, "record %s: \"%s\" must be true or false", type, field->name);
        *(bool *)to = json_is_true(value);
        break;
    case FIELD_U32:
        rc = get_integer(value, type, field->name, 0, UINT32_MAX, &number, err);
        *(uint32_t *)to = (uint32_t)number;
        break;
    case FIELD_I32:
        rc = get_integer(value, type, field->name, INT32_MIN, INT32_MAX, &number, err);
        *(int32_t *)to = (int32_t)number;
        break;
    case FIELD_I64:
        rc = get_integer(value, type, field->name, INT64_MIN, INT64_MAX, &number, err);
        *(int64_t *)to = number;
        break;
    case FIELD_U64: /* numbers of jobs */
        rc = get_integer(value, type, field->name, 0, INT64_MAX, &number, err);
        *(uint64_t *)to = (uint64_t)number;
        break;
    case FIELD_TEXT:
        if (!json_is_string(value) || json_string_length(value) >= field->size)
            return error_set(err, EINVAL, "record %s: \"%s\" must be a text of at most %zu bytes", type, field->name,
                             field->size - 1);
        memcpy(to, json_string_value(value), json_string_length(value));
        break;
    case FIELD_U32_ARRAY:
        rc = get_array(value, type, field, count, to, err);
        break;
    }
    return rc;
}

static void decref(json_t **json)
{
    json_decref(*json);
}

/* Where something is left over, which: a record is small, so a second walk costs nothing. */
static int unknown_member(json_t *object, uint32_t type, struct error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach (object, name, value) {
        bool known = !strcmp(name, "type") || !strcmp(name, "at_ns") || !strcmp(name, "job");
        size_t i;

        for (i = 0; !known && i < record_field_count; i++)
            known = record_fields[i].type == type && !strcmp(record_fields[i].name, name);
        if (!known)
            return error_set(err, EINVAL, "record %s: \"%s\" is not a member of it", record_type_name(type), name);
    }
    return 0;
}

static int read_record(const char *text, size_t length, struct record *record, struct error *err)
{
    CLEANUP(decref) json_t *object = NULL;
    const char *name;
    size_t i, members = COMMON_MEMBERS;
    uint32_t type, previous = 0;
    int64_t number = 0;
    int rc;

    memset(record, 0, sizeof *record);
    rc = json_read(text, length, JSON_REJECT_DUPLICATES, &bounds, &object, err);
    if (rc) {
        error_prefix(err, "record");
        return rc;
    }
    name = json_string_value(json_object_get(object, "type"));
    if (!name)
        return error_set(err, EINVAL, "record: must be an object with a text \"type\"");
    for (type = RECORD_NONE + 1; type < RECORD_TYPE_COUNT && strcmp(name, record_type_name(type)) != 0; type++)
        ;
    if (type == RECORD_TYPE_COUNT)
        return error_set(err, EINVAL, "record: type \"%.64s\" is not known: was it written by a newer carma?", name);
    name = record_type_name(type);
    record->type = type;
    rc = get_integer(json_object_get(object, "at_ns"), name, "at_ns", INT64_MIN, INT64_MAX, &record->at_ns, err);
    if (rc < 0)
        return rc;
    rc = get_integer(json_object_get(object, "job"), name, "job", 0, INT64_MAX, &number, err);
    if (rc < 0)
        return rc;
    record->job = (uint64_t)number;
    for (i = 0; i < record_field_count; i++) {
        const struct record_field *field = &record_fields[i];

        if (field->type != type)
            continue;
        rc = get_field(object, name, field, previous, record, err);
        if (rc < 0)
            return rc;
        previous = field->kind == FIELD_U32 ? *(uint32_t *)((char *)record + field->offset) : 0;
        members += json_object_get(object, field->name) != NULL;
    }
    return json_object_size(object) == members ? 0 : unknown_member(object, type, err);
}

int record_json_read(const char *text, size_t length, struct record *record, struct error *err)
{
    int rc = read_record(text, length, record, err);

    if (rc < 0) /* it may quote the text */
        error_make_printable(err);
    return rc;
}
