#include "slurm/plugin/json.h"

#include <string.h>

enum { DEEPEST = 16 };

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && ++at == end)
            return NULL;
    return at < end ? at + 1 : NULL;
}

/* The end of the value at `at`; NULL where there is none. */
static const char *skip_value(const char *at, const char *end, int depth)
{
    at = skip_space(at, end);
    if (at == end || depth > DEEPEST)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at != '{' && *at != '[') {
        const char *first = at;
        while (at < end && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *at) != NULL && *at != '\0')
            at++;
        return at > first ? at : NULL;
    }
    char closing = *at == '{' ? '}' : ']';
    at = skip_space(at + 1, end);
    if (at < end && *at == closing)
        return at + 1;
    for (;;) {
        if (closing == '}') {
            at = skip_space(at, end);
            at = at < end && *at == '"' ? skip_string(at, end) : NULL;
            at = at != NULL ? skip_space(at, end) : NULL;
            if (at == NULL || at == end || *at++ != ':')
                return NULL;
        }
        at = skip_value(at, end, depth + 1);
        at = at != NULL ? skip_space(at, end) : NULL;
        if (at == NULL || at == end)
            return NULL;
        if (*at == closing)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

struct json json_of(const char *bytes, size_t length)
{
    const char *end = bytes + length;
    const char *after = bytes != NULL ? skip_value(bytes, end, 0) : NULL;
    if (after == NULL || skip_space(after, end) != end)
        return (struct json){0};
    return (struct json){skip_space(bytes, end), after};
}

static struct json value_at(const char *at, const char *end)
{
    at = skip_space(at, end);
    return (struct json){at, skip_value(at, end, 0)};
}

bool json_next(struct json whole, struct json *walk, struct json *name, struct json *value)
{
    if (whole.at == NULL || (*whole.at != '{' && *whole.at != '['))
        return false;
    const char *at = skip_space(walk->at != NULL ? walk->at : whole.at + 1, whole.end);
    if (at == whole.end || *at == '}' || *at == ']')
        return false;
    *name = (struct json){0};
    if (*whole.at == '{') {
        *name = value_at(at, whole.end);
        at = skip_space(name->end, whole.end) + 1; /* the whole has been looked over: there is a colon */
    }
    *value = value_at(at, whole.end);
    at = skip_space(value->end, whole.end);
    walk->at = at < whole.end && *at == ',' ? at + 1 : at;
    return true;
}

struct json json_member(struct json object, const char *name)
{
    struct json walk = {0}, key, value;
    size_t length = strlen(name);
    while (json_next(object, &walk, &key, &value))
        if (key.at != NULL && json_length(key) == length + 2 && memcmp(key.at + 1, name, length) == 0)
            return value;
    return (struct json){0};
}

static int hex4(const char *at, const char *end)
{
    int code = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, at[i] | 0x20);
        if (at[i] == '\0' || digit == NULL)
            return -1;
        code = code << 4 | (int)(digit - digits);
    }
    return code;
}

bool json_read_string(struct json value, char *text, size_t size)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (value.at == NULL || *value.at != '"' || size == 0)
        return false;
    size_t length = 0;
    for (const char *at = value.at + 1; at < value.end - 1; at++) {
        char c = *at;
        if (c == '\\') {
            const char *found = *++at != '\0' ? strchr(escapes, *at) : NULL;
            int code = *at == 'u' ? hex4(at + 1, value.end) : -1;
            if (found == NULL && (code <= 0 || code > 0x7f)) /* carmad escapes control characters only */
                return false;
            c = found != NULL ? meant[found - escapes] : (char)code;
            at += found != NULL ? 0 : 4;
        }
        if (c == '\0' || length + 1 >= size)
            return false;
        text[length++] = c;
    }
    text[length] = '\0';
    return true;
}

bool json_read_integer(struct json value, int64_t *number)
{
    if (value.at == NULL)
        return false;
    const char *at = value.at;
    bool negative = *at == '-';
    at += negative;
    if (at == value.end || value.end - at > 18)
        return false;
    int64_t sum = 0;
    for (; at < value.end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        sum = sum * 10 + (*at - '0');
    }
    *number = negative ? -sum : sum;
    return true;
}

bool json_is_yes(struct json value)
{
    return value.at != NULL && json_length(value) == 4 && memcmp(value.at, "true", 4) == 0;
}

size_t json_length(struct json value)
{
    return value.at != NULL ? (size_t)(value.end - value.at) : 0;
}
