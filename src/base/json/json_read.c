#include "base/json/json_read.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The tokens of a text that need not be JSON: enough to know how much a reader would make of it. */
enum token { TOKEN_END, TOKEN_OPENS, TOKEN_CLOSES, TOKEN_STRING, TOKEN_WORD };

struct scan {
    const char *at, *end;
    const char *token; /* the last one */
    size_t depth;      /* behind it */
};

static bool separates(char c)
{
    return c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_bracket(char c)
{
    return c == '{' || c == '[' || c == '}' || c == ']';
}

static void skip_string(struct scan *scan)
{
    while (++scan->at < scan->end && *scan->at != '"')
        if (*scan->at == '\\')
            scan->at++;
    scan->at = scan->at < scan->end ? scan->at + 1 : scan->end;
}

static enum token next(struct scan *scan)
{
    while (scan->at < scan->end && separates(*scan->at))
        scan->at++;
    scan->token = scan->at;
    if (scan->at == scan->end)
        return TOKEN_END;
    switch (*scan->at) {
    case '"':
        skip_string(scan);
        return TOKEN_STRING;
    case '{':
    case '[':
        scan->at++;
        scan->depth++;
        return TOKEN_OPENS;
    case '}':
    case ']':
        scan->at++;
        scan->depth -= scan->depth > 0;
        return TOKEN_CLOSES;
    default:
        while (scan->at < scan->end && !separates(*scan->at) && !is_bracket(*scan->at) && *scan->at != '"')
            scan->at++;
        return TOKEN_WORD;
    }
}

static struct json_bounds count(const char *text, size_t length)
{
    struct scan scan = {.at = text, .end = text + length};
    struct json_bounds found = {0};

    for (enum token token; (token = next(&scan)) != TOKEN_END;) {
        found.values += token != TOKEN_CLOSES;
        if (scan.depth > found.depth)
            found.depth = scan.depth;
        if (token == TOKEN_STRING)
            found.bytes += (size_t)(scan.at - scan.token);
    }
    return found;
}

int json_check(const char *text, size_t length, const struct json_bounds *most, struct error *err)
{
    const struct json_bounds found = count(text, length);

    if (found.depth > most->depth)
        return error_set(err, E2BIG, "nested %zu levels deep: at most %zu are read", found.depth, most->depth);
    if (found.values > most->values)
        return error_set(err, E2BIG, "%zu values and names are too many: at most %zu are read, leave some out",
                         found.values, most->values);
    if (found.bytes > most->bytes)
        return error_set(err, E2BIG, "texts of %zu bytes are too long: at most %zu are read, shorten them", found.bytes,
                         most->bytes);
    return 0;
}

int json_read(const char *text, size_t length, size_t flags, const struct json_bounds *most, json_t **json,
              struct error *err)
{
    json_error_t at;
    int rc = json_check(text, length, most, err);

    *json = NULL;
    if (rc)
        return rc;
    *json = json_loadb(text, length, flags, &at);
    return *json ? 0 : error_set(err, EINVAL, "not JSON in line %d, byte %d: %s", at.line, at.column, at.text);
}

size_t json_take_apart(const char *text, size_t length, struct strbuf *rest, struct json_piece *pieces, size_t most)
{
    struct scan scan = {.at = text, .end = text + length};
    const char *kept = text; /* up to there the text is in `rest`, or in a piece */
    size_t count = 0;

    for (enum token token; (token = next(&scan)) != TOKEN_END;) {
        if (token == TOKEN_OPENS && scan.depth == 3 && count < most) {
            strbuf_append(rest, kept, (size_t)(scan.token - kept));
            kept = scan.token;
        } else if (token == TOKEN_CLOSES && scan.depth == 2) {
            if (count++ >= most)
                continue;
            pieces[count - 1] = (struct json_piece){.text = kept, .length = (size_t)(scan.at - kept)};
            strbuf_puts(rest, " 0 "); /* apart from its neighbours, which might be "[1{}]" */
            kept = scan.at;
        }
    }
    if (count <= most && scan.depth < 3) /* else it is of no use, and may be long */
        strbuf_append(rest, kept, (size_t)(text + length - kept));
    return count;
}
