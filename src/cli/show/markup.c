#include "cli/show/markup.h"

void markup_append(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            strbuf_puts(out, "&amp;");
            break;
        case '<':
            strbuf_puts(out, "&lt;");
            break;
        case '>':
            strbuf_puts(out, "&gt;");
            break;
        case '"':
            strbuf_puts(out, "&quot;");
            break;
        default:
            /* XML has no way to write other control characters */
            strbuf_append(out, (unsigned char)*text < 0x20 ? " " : text, 1);
        }
    }
}
