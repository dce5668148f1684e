#include "cli/show/csv_text.h"

#include <stdio.h>
#include <stdbool.h>
#include <string.h>

static void put_byte(struct strbuf *out, unsigned char byte)
{
    if (byte < ' ' || byte == 0x7f)
        strbuf_printf(out, "\\x%02x", byte);
    else
        strbuf_append(out, &byte, 1);
    if (byte == '"')
        strbuf_append(out, &byte, 1);
}

void csv_put_text(struct strbuf *out, const char *text)
{
    const char *word = text ? text + strspn(text, " ") : "";
    bool formula = *word && strchr("=+-@\t\r\n", *word), quoted;

    if (!text)
        return;
    quoted = formula || strpbrk(text, ",\"'; ") != NULL;
    strbuf_puts(out, quoted ? "\"" : "");
    strbuf_puts(out, formula ? "'" : "");
    for (; *text; text++)
        put_byte(out, (unsigned char)*text);
    strbuf_puts(out, quoted ? "\"" : "");
}
