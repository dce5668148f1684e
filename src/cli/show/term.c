#include "cli/show/term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "base/strbuf.h"
#include "base/units.h"

int term_width(FILE *stream)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int64_t value;

    if (columns && parse_integer(columns, 20, 10000, &value, NULL) == 0)
        return (int)value;
    if (isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return TERM_UNLIMITED;
}

bool term_colour(FILE *stream)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return isatty(fileno(stream)) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
}

/* At the first character that needs it: reading the locale's files takes a tenth of a start's time. */
static void know_locale(void)
{
    static bool known;

    if (!known)
        setlocale(LC_CTYPE, "");
    known = true;
}

bool term_utf8(void)
{
    know_locale();
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static size_t columns_of(int32_t c)
{
    int columns;

    if (c < 0x80)
        return 1;
    know_locale();
    columns = wcwidth((wchar_t)c);
    return columns < 0 ? 1 : (size_t)columns;
}

char *term_escape(const char *text)
{
    struct strbuf out = {0};
    size_t length;

    if (!text)
        return xstrdup("-");
    for (; *text; text += length) {
        int32_t c = printable_decode(text, &length);
        if (!printable_deceives(c) && (c < 0x80 || term_utf8())) {
            strbuf_append(&out, text, length);
            continue;
        }
        for (size_t i = 0; i < length; i++)
            strbuf_printf(&out, "\\x%02x", (unsigned char)text[i]);
    }
    return strbuf_steal(&out);
}

size_t term_text_width(const char *text)
{
    size_t width = 0, length;

    for (; *text; text += length) {
        if (text[0] == '\033' && text[1] == '[') {
            length = strcspn(text, "m");
            length += text[length] == 'm';
            continue;
        }
        int32_t c = printable_decode(text, &length);
        width += columns_of(c);
    }
    return width;
}

size_t term_bytes_within(const char *text, size_t width)
{
    size_t used = 0, at = 0;

    while (text[at]) {
        size_t length;
        int32_t c = printable_decode(text + at, &length);
        used += columns_of(c);
        if (used > width)
            break;
        at += length;
    }
    return at;
}

char *term_cut(const char *text, size_t width)
{
    CLEANUP(free_ptr) char *kept = xstrndup(text, term_bytes_within(text, width - 1));

    return xasprintf("%s%s%*s", kept, term_utf8() ? "…" : "~", (int)(width - 1 - term_text_width(kept)), "");
}

char *term_take_line(const char **rest, size_t width)
{
    size_t fits = term_bytes_within(*rest, width), end = fits;
    char *line;

    if ((*rest)[fits] && (*rest)[fits] != ' ') {
        while (end && (*rest)[end - 1] != ' ')
            end--;
        end = end ? end : fits ? fits : 1;
    }
    line = xstrndup(*rest, end);
    *rest += end + strspn(*rest + end, " ");
    return line;
}

const char *term_style_start(enum term_style style)
{
    static const char *const starts[] = {
        [STYLE_NONE] = "",           [STYLE_BOLD] = "\033[1m", [STYLE_DIM] = "\033[2m",   [STYLE_GREEN] = "\033[32m",
        [STYLE_YELLOW] = "\033[33m", [STYLE_RED] = "\033[31m", [STYLE_BLUE] = "\033[36m",
    };
    return starts[style];
}

char *term_bar(double part, double whole, int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double filled = whole > 0 ? part / whole * width : 0;
    bool utf8 = term_utf8();
    struct strbuf out = {0};
    int full, column;

    filled = filled < 0 ? 0 : filled > width ? width : filled;
    full = (int)filled;
    for (column = 0; column < full; column++)
        strbuf_puts(&out, utf8 ? "█" : "#");
    if (utf8 && column < width && (int)((filled - full) * 8) > 0) {
        strbuf_puts(&out, eighths[(int)((filled - full) * 8)]);
        column++;
    }
    for (; column < width; column++)
        strbuf_puts(&out, utf8 ? "░" : ".");
    return strbuf_steal(&out);
}
