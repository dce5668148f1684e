#include "base/text/printable.h"

#include <stdlib.h>
#include <string.h>

int32_t printable_decode(const char *text, size_t *length)
{
    static const int32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    int32_t c;

    *length = 1;
    if (s[0] < 0x80)
        return s[0];
    size_t count = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return -1;
    c = s[0] & (0x7f >> count);
    for (size_t i = 1; i < count; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return -1;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < smallest[count] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return -1;
    *length = count;
    return c;
}

bool printable_deceives(int32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c >= 0xe0000;
}

void printable_append(struct strbuf *out, const char *text)
{
    for (size_t length; *text; text += length) {
        if (!printable_deceives(printable_decode(text, &length)))
            strbuf_append(out, text, length);
        else
            for (size_t i = 0; i < length; i++)
                strbuf_printf(out, "\\x%02x", (unsigned char)text[i]);
    }
}

void printable_replace(char *text)
{
    char *to = text;

    for (size_t length; *text; text += length) {
        if (printable_deceives(printable_decode(text, &length))) {
            *to++ = '?';
        } else {
            memmove(to, text, length);
            to += length;
        }
    }
    *to = '\0';
}

static void append_escape(struct strbuf *out, int32_t c)
{
    if (c >= 0x10000)
        strbuf_printf(out, "\\u%04x\\u%04x", 0xd800u + (unsigned)((c - 0x10000) >> 10),
                      0xdc00u + (unsigned)((c - 0x10000) & 0x3ff));
    else
        strbuf_printf(out, "\\u%04x", (unsigned)c);
}

/* Outside strings JSON has no such character, but the white space of its own layout. */
char *printable_json(char *json)
{
    struct strbuf out = {0};
    const char *begin = json;

    for (size_t at = 0, length; json && json[at]; at += length) {
        int32_t c = printable_decode(json + at, &length);

        if (c < 0x7f || !printable_deceives(c))
            continue;
        strbuf_append(&out, begin, (size_t)(json + at - begin));
        append_escape(&out, c);
        begin = json + at + length;
    }
    if (!out.text)
        return json;
    strbuf_puts(&out, begin);
    free(json);
    return strbuf_steal(&out);
}

size_t printable_drop_colours(char *text, size_t length)
{
    size_t left = 0;

    for (size_t at = 0; at < length; at++) {
        if (text[at] == '\033' && at + 1 < length && text[at + 1] == '[') {
            at += 2;
            while (at < length && (text[at] < '@' || text[at] > '~'))
                at++;
            continue;
        }
        text[left++] = text[at];
    }
    return left;
}
