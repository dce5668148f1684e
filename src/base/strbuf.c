#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void strbuf_append(struct strbuf *buf, const void *bytes, size_t count)
{
    array_reserve(buf->text, buf->capacity, buf->length + count + 1);
    if (count)
        memcpy(buf->text + buf->length, bytes, count);
    buf->length += count;
    buf->text[buf->length] = '\0';
}

void strbuf_puts(struct strbuf *buf, const char *text)
{
    strbuf_append(buf, text, strlen(text));
}

void strbuf_printf(struct strbuf *buf, const char *format, ...)
{
    va_list args, again;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length > 0) {
        array_reserve(buf->text, buf->capacity, buf->length + (size_t)length + 1);
        vsnprintf(buf->text + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
}

void strbuf_clear(struct strbuf *buf)
{
    buf->length = 0;
    if (buf->text)
        buf->text[0] = '\0';
}

void strbuf_release(struct strbuf *buf)
{
    free(buf->text);
    *buf = (struct strbuf){0};
}

char *strbuf_steal(struct strbuf *buf)
{
    char *text = buf->text ? buf->text : xstrdup("");

    *buf = (struct strbuf){0};
    return text;
}
