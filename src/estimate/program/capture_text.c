#include "estimate/program/capture_text.h"

#include <stdio.h>
#include <string.h>

#define SHOWN 40 /* characters of a wrong word in an error */

void capture_text_init(struct capture_text *text, const char *name, const char *bytes, size_t length, struct error *err)
{
    *text = (struct capture_text){
        .name = name, .at = bytes, .end = bytes, .next = bytes, .limit = bytes + length, .err = err};
}

static int wrong(struct capture_text *text, const char *word, size_t length, const char *expected)
{
    return capture_fail(text, "'%.*s' is not %s", (int)(length < SHOWN ? length : SHOWN), word, expected);
}

int capture_line(struct capture_text *text)
{
    const char *newline;

    text->line++;
    text->at = text->next;
    newline = memchr(text->at, '\n', (size_t)(text->limit - text->at));
    if (!newline)
        return capture_fail(text, "the file is cut short here: its last line is 'end'; record it again");
    text->end = newline;
    text->next = newline + 1;
    if (text->end - text->at > CAPTURE_LINE_MAX)
        return capture_fail(text, "longer than %d characters", CAPTURE_LINE_MAX);
    for (const char *c = text->at; c < text->end; c++) {
        if (*c < 0x20 || *c > 0x7e)
            return capture_fail(text, "column %zu is not printable ASCII", (size_t)(c - text->at) + 1);
    }
    return 0;
}

int capture_field(struct capture_text *text, const char *word)
{
    size_t length = strlen(word);
    int rc = capture_line(text);

    if (rc)
        return rc;
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0 ||
        (text->at + length < text->end && text->at[length] != ' '))
        return capture_fail(text, "'%s' is expected here", word);
    text->at += length;
    if (text->at < text->end)
        text->at++;
    return 0;
}

int capture_word(struct capture_text *text, const char **word, size_t *length)
{
    const char *space;

    if (text->at == text->end)
        return capture_fail(text, "the line is too short");
    space = memchr(text->at, ' ', (size_t)(text->end - text->at));
    *word = text->at;
    *length = (size_t)((space ? space : text->end) - text->at);
    if (*length == 0 || (space && space + 1 == text->end))
        return capture_fail(text, "words are separated by single spaces");
    text->at += *length + (space != NULL);
    return 0;
}

int capture_line_end(struct capture_text *text)
{
    return text->at == text->end ? 0 : wrong(text, text->at, (size_t)(text->end - text->at), "expected on this line");
}

/* The number up to the first non-digit; returns that character's place; NULL: none, or above high. */
static const char *digits(const char *at, const char *end, int64_t high, int64_t *value)
{
    const char *start = at;

    for (*value = 0; at < end && *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *at - '0', value) ||
            *value > high)
            return NULL;
    }
    return at > start ? at : NULL;
}

int capture_number(struct capture_text *text, const char *word, size_t length, int64_t high, int64_t *value)
{
    char expected[64];

    if (digits(word, word + length, high, value) == word + length)
        return 0;
    snprintf(expected, sizeof expected, "a whole number from 0 to %lld", (long long)high);
    return wrong(text, word, length, expected);
}

int capture_number_word(struct capture_text *text, int64_t high, int64_t *value)
{
    const char *word = NULL;
    size_t length = 0;
    int rc = capture_word(text, &word, &length);

    return rc ? rc : capture_number(text, word, length, high, value);
}

int capture_size(struct capture_text *text, const char *word, size_t length, int64_t high, int64_t *value)
{
    const char *end = word + length, *at;
    int64_t base, slope = 0;

    at = digits(word, end, high, &base);
    if (at && at + 1 == end && *at == 'x') {
        slope = base;
        base = 0;
        at++;
    } else if (at && at < end && *at == '+') {
        at = digits(at + 1, end, high, &slope);
        at = at && at + 1 == end && *at == 'x' ? end : NULL;
    }
    if (at != end)
        return wrong(text, word, length, "a size: BASE, SLOPEx or BASE+SLOPEx");
    if (slope && !text->scales)
        return wrong(text, word, length, "possible: this capture does not scale with the batch size");
    if (__builtin_mul_overflow(slope, text->batch_size, &slope) || __builtin_add_overflow(base, slope, value) ||
        *value > high)
        return capture_fail(text, "'%.*s' at batch size %lld is more than %lld", (int)(length < SHOWN ? length : SHOWN),
                            word, (long long)text->batch_size, (long long)high);
    return 0;
}
