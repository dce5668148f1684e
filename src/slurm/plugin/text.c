#include "slurm/plugin/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->length + more + 1 > text->capacity) {
        size_t wanted = (text->length + more + 1) * 2;
        char *bytes = realloc(text->bytes, wanted);
        if (bytes == NULL) {
            text->failed = true;
            return false;
        }
        text->bytes = bytes;
        text->capacity = wanted;
    }
    return true;
}

void text_add(struct text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0 || !reserve(text, (size_t)length))
        return;
    va_start(list, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, list);
    va_end(list);
    text->length += (size_t)length;
}

/* The length of the UTF-8 character at `at`; 0 where there is none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char mask, lead;
        unsigned least;
    } kinds[] = {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t extra = 1; extra <= 3; extra++) {
        if ((at[0] & kinds[extra - 1].mask) != kinds[extra - 1].lead)
            continue;
        if (left <= extra)
            return 0;
        unsigned code = at[0] & (unsigned char)~kinds[extra - 1].mask;
        for (size_t i = 1; i <= extra; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (at[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code >= kinds[extra - 1].least && code <= 0x10ffff && !surrogate ? extra + 1 : 0;
    }
    return 0;
}

void text_json(struct text *text, const char *bytes, size_t length)
{
    text_add(text, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\') {
            text_printf(text, "\\%c", c);
        } else if (c == '\n') {
            text_add(text, "\\n", 2);
        } else if (c == 0) {
            text_add(text, "?", 1); /* C programs that read it would stop there */
        } else if (c < 0x20 || c == 0x7f) {
            text_printf(text, "\\u%04x", c);
        } else if (c < 0x80) {
            text_add(text, bytes + i, 1);
        } else {
            size_t wide = utf8_length((const unsigned char *)bytes + i, length - i);
            text_add(text, wide > 0 ? bytes + i : "?", wide > 0 ? wide : 1);
            i += wide > 0 ? wide - 1 : 0;
        }
    }
    text_add(text, "\"", 1);
}

void text_json_string(struct text *text, const char *string)
{
    if (string == NULL)
        text_add(text, "null", 4);
    else
        text_json(text, string, strlen(string));
}

void text_clean(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

void text_release(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}
