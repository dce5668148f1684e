#include "cli/top/lines.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/memory.h"

void top_screen_init(struct top_screen *screen, size_t width, size_t height)
{
    *screen = (struct top_screen){.width = width, .height = height, .lines = xcalloc(height, sizeof *screen->lines)};
}

void top_screen_release(struct top_screen *screen)
{
    for (size_t i = 0; i < screen->height; i++) {
        for (size_t k = 0; k < screen->lines[i].count; k++)
            free(screen->lines[i].spans[k].text);
        free(screen->lines[i].spans);
    }
    free(screen->lines);
    *screen = (struct top_screen){0};
}

struct top_line *top_screen_line(struct top_screen *screen, enum top_line_kind kind)
{
    if (screen->used == screen->height)
        return NULL;
    screen->lines[screen->used].kind = kind;
    return &screen->lines[screen->used++];
}

/* A terminal's idea of a character that the C library does not know is anybody's guess. */
static char *make_safe(const char *text)
{
    CLEANUP(free_ptr) char *escaped = term_escape(text);
    struct strbuf out = {0};
    mbstate_t state = {0};
    size_t left = strlen(escaped);

    for (const char *at = escaped; left;) {
        wchar_t c;
        size_t length = mbrtowc(&c, at, left, &state);
        bool is_known = length != 0 && length <= left && iswprint((wint_t)c);
        if (length == 0 || length > left) {
            length = 1;
            state = (mbstate_t){0};
        }
        strbuf_append(&out, is_known ? at : "?", is_known ? length : 1);
        at += length;
        left -= length;
    }
    return strbuf_steal(&out);
}

static void add_span(struct top_line *line, enum term_style style, char *text)
{
    array_reserve(line->spans, line->capacity, line->count + 1);
    line->spans[line->count++] = (struct top_span){.style = style, .text = text};
    line->width += term_text_width(text);
}

void top_put(struct top_line *line, enum term_style style, size_t columns, bool right, const char *text)
{
    CLEANUP(free_ptr) char *safe = make_safe(text);
    size_t width = term_text_width(safe);
    int padding = width < columns ? (int)(columns - width) : 0;

    if (!line || !columns)
        return;
    if (width > columns)
        add_span(line, style, term_cut(safe, columns));
    else
        add_span(line, style, xasprintf("%*s%s%*s", right ? padding : 0, "", safe, right ? 0 : padding, ""));
}

void top_put_text(struct top_line *line, enum term_style style, size_t most, const char *text)
{
    CLEANUP(free_ptr) char *safe = make_safe(text);
    size_t width = term_text_width(safe);

    top_put(line, style, width < most ? width : most, false, safe);
}

static bool grows_before(const struct top_column *columns, const size_t *widths, size_t a, size_t b)
{
    return (widths[a] - columns[a].least) * (columns[b].most - columns[b].least) <
           (widths[b] - columns[b].least) * (columns[a].most - columns[a].least);
}

void top_fit(const struct top_column *columns, size_t count, size_t width, size_t *widths)
{
    size_t total, shown;

    for (size_t i = 0; i < count; i++)
        widths[i] = columns[i].least;
    for (;;) {
        size_t drop = count;

        total = shown = 0;
        for (size_t i = 0; i < count; i++) {
            total += widths[i];
            shown += widths[i] > 0;
            if (widths[i] && columns[i].optional && (drop == count || columns[i].optional > columns[drop].optional))
                drop = i;
        }
        total += shown ? shown - 1 : 0;
        if (total <= width || drop == count)
            break;
        widths[drop] = 0;
    }
    for (; total < width; total++) { /* to the one with the smallest part of its possible growth */
        size_t best = count;

        for (size_t i = 0; i < count; i++)
            if (widths[i] && widths[i] < columns[i].most && (best == count || grows_before(columns, widths, i, best)))
                best = i;
        if (best == count)
            break;
        widths[best]++;
    }
}

static bool give_row(size_t want, size_t *rows, size_t *left)
{
    if (!*left || *rows >= want)
        return false;
    ++*rows;
    --*left;
    return true;
}

void top_share_rows(const size_t *wants, size_t count, size_t focus, size_t available, size_t *rows)
{
    size_t left = available;
    bool given;

    for (size_t i = 0; i < count; i++) {
        size_t least = wants[i] < 2 ? wants[i] : 2;
        rows[i] = least < left ? least : left;
        left -= rows[i];
    }
    while (rows[0] < available / 2 && give_row(wants[0], &rows[0], &left))
        ;
    do {
        given = false;
        for (size_t k = 0; k < count; k++) {
            size_t i = (focus + k) % count; /* the pane with the keys comes first, where the last row is odd */
            given = (i != 0 && give_row(wants[i], &rows[i], &left)) || given;
        }
    } while (given);
    while (give_row(wants[0], &rows[0], &left))
        ;
}
