#include "cli/cluster/foreign.h"

#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "cli/cluster/children.h"
#include "cli/show/term.h"

#define LARGE ((json_int_t)1 << 61)
#define SMALL ((json_int_t)1 << 43)

/* Whole characters of UTF-8. */
static size_t cut_length(const char *text, size_t length)
{
    size_t cut = FOREIGN_TEXT_LIMIT;

    if (length <= cut)
        return length;
    while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
        cut--;
    return cut;
}

static json_int_t limit_of(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    const char *end = length >= 3 ? name + length - 3 : "";

    return strcmp(end, "_ns") == 0 || strcmp(end, "_ms") == 0 || strcmp(end, "_mj") == 0 ? LARGE : SMALL;
}

static json_int_t clamp(json_int_t value, json_int_t limit)
{
    return value > limit ? limit : value < -limit ? -limit : value;
}

static double clamp_real(double value, double limit)
{
    return value > limit ? limit : value < -limit ? -limit : value;
}

/* As deep as jansson itself parses. */
static void bound(json_t *json, const char *name)
{
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_string(json)) {
        size_t length = json_string_length(json), kept = cut_length(json_string_value(json), length);
        CLEANUP(free_ptr) char *text = kept < length ? xstrndup(json_string_value(json), kept) : NULL;
        if (text)
            json_string_setn(json, text, kept);
    } else if (json_is_integer(json)) {
        json_integer_set(json, clamp(json_integer_value(json), limit_of(name)));
    } else if (json_is_real(json)) {
        json_real_set(json, clamp_real(json_real_value(json), (double)limit_of(name)));
    }
    json_object_foreach (json, key, value)
        bound(value, key);
    json_array_foreach (json, i, value)
        bound(value, name);
}

json_t *foreign_json(const char *text, size_t length)
{
    /* A hundred for each job of a node's thousands. */
    static const struct json_bounds bounds = {.values = 1 << 20, .depth = 32, .bytes = CHILD_OUT_LIMIT};
    json_t *json;

    json_read(text ? text : "", length, 0, &bounds, &json, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    bound(json, NULL);
    return json;
}

char *foreign_last_line(const char *text)
{
    size_t length = text ? strlen(text) : 0, begin, kept;

    while (length && strchr("\r\n\t ", text[length - 1]))
        length--;
    for (begin = length; begin && text[begin - 1] != '\n'; begin--)
        ;
    if (begin == length)
        return NULL;
    kept = cut_length(text + begin, length - begin);
    CLEANUP(free_ptr) char *line = xstrndup(text + begin, kept);
    return term_escape(line);
}
