/* A pane of text in `carma top`: a job's output, bounded, or lines that carma writes itself; and the visible part of
 * it. Pure. */
#ifndef CARMA_CLI_TOP_TEXT_H
#define CARMA_CLI_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define TOP_TEXT_LINES      1000 /* the last ones are kept */
#define TOP_TEXT_LINE_BYTES 1024 /* of a line; the rest of it goes on in the next */

struct top_text {
    char *lines[TOP_TEXT_LINES]; /* a ring; raw: to be escaped before they are shown */
    size_t count;
    size_t first;
    struct strbuf open; /* the line that has not ended */
    bool returned;      /* a carriage return came last: the next text takes the line's place, as progress bars do */
    int escape;         /* within an escape sequence, which is left out */
    int64_t above;      /* rows between the last one in sight and the end; 0: new lines come into sight by themselves */
};

void top_text_release(struct top_text *text); /* empties it */

/* Adds a piece of a job's output, cut anywhere. Colours and cursor movements ("ESC [ ...") are left out, tabs become
 * blanks.
 */
void top_text_add(struct top_text *text, const char *bytes, size_t count);

/* Adds one line, cut into several where it holds line ends. */
void top_text_line(struct top_text *text, const char *line);

/* The text in rows of at most `width` columns, escaped, broken between words. Calls `put` for the rows that are in
 * sight in `height` rows, from the top. Corrects text->above where it goes beyond the beginning. */
void top_text_show(struct top_text *text, size_t width, size_t height, void (*put)(void *user, const char *row),
                   void *user);

#endif
