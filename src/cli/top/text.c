#include "cli/top/text.h"

#include "base/memory.h"
#include "cli/show/term.h"

#define TAB 8

/* Where in an escape sequence. */
enum { ESCAPE_NONE, ESCAPE_BEGUN, ESCAPE_CSI };

void top_text_release(struct top_text *text)
{
    for (size_t i = 0; i < text->count; i++)
        free(text->lines[(text->first + i) % TOP_TEXT_LINES]);
    strbuf_release(&text->open);
    *text = (struct top_text){0};
}

static void end_line(struct top_text *text)
{
    size_t at = (text->first + text->count) % TOP_TEXT_LINES;

    if (text->count == TOP_TEXT_LINES) {
        free(text->lines[text->first]);
        text->first = (text->first + 1) % TOP_TEXT_LINES;
    } else {
        text->count++;
    }
    text->lines[at] = xstrdup(text->open.text ? text->open.text : "");
    strbuf_clear(&text->open);
    text->above += text->above > 0; /* a reader further up goes on reading there */
}

static void add_byte(struct top_text *text, char c)
{
    if (text->returned && c != '\n')
        strbuf_clear(&text->open);
    text->returned = c == '\r';
    if (c == '\n')
        end_line(text);
    else if (c == '\t')
        strbuf_printf(&text->open, "%*s", (int)(TAB - text->open.length % TAB), "");
    else if (c && c != '\r')
        strbuf_append(&text->open, &c, 1);
    /* Not within a character: the bytes after its first would not be one. */
    if (text->open.length >= TOP_TEXT_LINE_BYTES &&
        ((unsigned char)c < 0x80 || text->open.length > TOP_TEXT_LINE_BYTES + 4))
        end_line(text);
}

void top_text_add(struct top_text *text, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)bytes[i];

        switch (text->escape) {
        case ESCAPE_NONE:
            if (c == '\033')
                text->escape = ESCAPE_BEGUN;
            else
                add_byte(text, (char)c);
            break;
        case ESCAPE_BEGUN: /* a sequence that is not a CSI is shown, escaped */
            text->escape = c == '[' ? ESCAPE_CSI : ESCAPE_NONE;
            if (c != '[') {
                add_byte(text, '\033');
                add_byte(text, (char)c);
            }
            break;
        default: /* parameters, until the final byte; an invalid byte ends it */
            if (c < 0x20 || c >= 0x40)
                text->escape = ESCAPE_NONE;
            if (c < 0x20)
                add_byte(text, (char)c);
            break;
        }
    }
}

void top_text_line(struct top_text *text, const char *line)
{
    for (; *line; line++)
        add_byte(text, *line);
    add_byte(text, '\n');
}

struct rows {
    char **items;
    size_t count, capacity;
};

static void add_rows(struct rows *rows, const char *line, size_t width)
{
    CLEANUP(free_ptr) char *safe = term_escape(line);
    const char *rest = safe;

    do {
        array_reserve(rows->items, rows->capacity, rows->count + 1);
        rows->items[rows->count++] = term_take_line(&rest, width);
    } while (*rest);
}

void top_text_show(struct top_text *text, size_t width, size_t height, void (*put)(void *user, const char *row),
                   void *user)
{
    struct rows rows = {0};
    size_t top, most;

    for (size_t i = 0; i < text->count; i++)
        add_rows(&rows, text->lines[(text->first + i) % TOP_TEXT_LINES], width);
    if (text->open.length)
        add_rows(&rows, text->open.text, width);
    most = rows.count > height ? rows.count - height : 0;
    if (text->above > (int64_t)most)
        text->above = (int64_t)most;
    top = most - (size_t)text->above;
    for (size_t i = top; i < rows.count && i < top + height; i++)
        put(user, rows.items[i]);
    for (size_t i = 0; i < rows.count; i++)
        free(rows.items[i]);
    free(rows.items);
}
