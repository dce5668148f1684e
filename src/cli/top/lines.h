/* Lines of styled text for a screen: text from outside is made harmless here, and only here. Pure. */
#ifndef CARMA_CLI_TOP_LINES_H
#define CARMA_CLI_TOP_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "cli/show/term.h"

struct top_span {
    enum term_style style;
    char *text; /* safe to print */
};

enum top_line_kind { TOP_PLAIN, TOP_TITLE, TOP_TITLE_FOCUSED, TOP_SELECTED, TOP_ALARM };

struct top_line {
    enum top_line_kind kind;
    struct top_span *spans;
    size_t count, capacity;
    size_t width; /* columns that the spans take */
};

struct top_screen {
    size_t width, height;
    struct top_line *lines; /* `height` of them */
    size_t used;            /* lines that have been taken */
    bool stale;             /* to be shown greyed */
};

void top_screen_init(struct top_screen *screen, size_t width, size_t height);
void top_screen_release(struct top_screen *screen);

/* The next line; where there is none left, NULL: putting something there does nothing. */
struct top_line *top_screen_line(struct top_screen *screen, enum top_line_kind kind);

/* Puts text at the end of the line, escaped, in exactly `columns` columns, cut or padded; at the left or the right of
 * them. */
void top_put(struct top_line *line, enum term_style style, size_t columns, bool right, const char *text);

/* The same in as many columns as it takes, but no more than `most`. */
void top_put_text(struct top_line *line, enum term_style style, size_t most, const char *text);

/* Columns of a table. */
struct top_column {
    const char *title;
    bool right;
    size_t least, most; /* columns that it takes */
    int optional;       /* may be left out, the greatest first; 0: never */
};

/* Which are shown and how wide they are: widths[i] is 0 for one that is left out. The remaining rows go to the panes
 * that may grow, in proportion. Columns stand one blank apart. */
void top_fit(const struct top_column *columns, size_t count, size_t width, size_t *widths);

/* How many rows each of the panes gets of `available`: at least its title and a row where there is room for these. The
 * first pane then gets up to half of all rows; the others share the rest in turn. Rows that nobody else wants go to the
 * first pane. wants[i]: with its title. */
void top_share_rows(const size_t *wants, size_t count, size_t focus, size_t available, size_t *rows);

#endif
