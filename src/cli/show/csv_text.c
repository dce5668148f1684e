#include "cli/show/csv_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/printable.h"

void csv_put_text(struct strbuf *out, const char *text)
{
    CLEANUP(strbuf_release) struct strbuf shown = {0};
    const char *word = text ? text + strspn(text, " ") : "";
    bool formula = *word && strchr("=+-@\t\r\n", *word), quoted;

    if (!text)
        return;
    quoted = formula || strpbrk(text, ",\"'; ") != NULL;
    strbuf_puts(out, quoted ? "\"" : "");
    strbuf_puts(out, formula ? "'" : "");
    printable_append(&shown, text);
    for (size_t i = 0; i < shown.length; i++) {
        strbuf_append(out, shown.text + i, 1);
        strbuf_puts(out, shown.text[i] == '"' ? "\"" : "");
    }
    strbuf_puts(out, quoted ? "\"" : "");
}
