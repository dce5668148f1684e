/* The terminal's properties, and text made safe to print on it. */
#ifndef CARMA_CLI_SHOW_TERM_H
#define CARMA_CLI_SHOW_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TERM_UNLIMITED 100000

/* Columns to lay a table out in: COLUMNS where it is a sensible number, else the terminal's, else TERM_UNLIMITED (a
 * pipe gets everything). */
int term_width(FILE *stream);

/* Whether to colour: a terminal, no NO_COLOR, and not TERM=dumb. */
bool term_colour(FILE *stream);

/* Whether the locale's character set is UTF-8. */
bool term_utf8(void);

/* Text from outside, made printable. Control characters (C0, DEL, C1), bytes that are not UTF-8, and characters
 * that reorder or hide text become \xNN. So does everything beyond ASCII where the locale is not UTF-8. Owned by the
 * caller; NULL gives "-". */
char *term_escape(const char *text);

/* Columns that text takes on the terminal; escape sequences "ESC [ ... m" take none. */
size_t term_text_width(const char *text);

/* How many bytes of text fill at most `width` columns: whole characters. Without escape sequences. */
size_t term_bytes_within(const char *text, size_t width);

/* The first columns of a text that is wider than `width` (at least 1), the last of them an ellipsis; owned by the
 * caller. */
char *term_cut(const char *text, size_t width);

/* As many words of *rest as fit `width` (at least 1), which *rest then goes on behind; a word that is too long is
 * broken. Owned by the caller. */
char *term_take_line(const char **rest, size_t width);

enum term_style { STYLE_NONE, STYLE_BOLD, STYLE_DIM, STYLE_GREEN, STYLE_YELLOW, STYLE_RED, STYLE_BLUE };
const char *term_style_start(enum term_style style);
#define TERM_STYLE_END "\033[0m"

/* A bar of `width` columns, filled by part / whole (clamped); owned by the caller. */
char *term_bar(double part, double whole, int width);

/* Clears the screen and goes to its top left. */
#define TERM_HOME_CLEAR "\033[H\033[2J"
/* Goes to the start of the line and clears it. */
#define TERM_LINE_CLEAR "\r\033[2K"

#endif
