/* Tables of text that fit the terminal: columns that may shrink do, then columns that may go do. */
#ifndef CARMA_CLI_SHOW_TABLE_H
#define CARMA_CLI_SHOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "cli/show/term.h"

struct table_column {
    const char *title;
    bool right;   /* aligned to the right */
    int minimum;  /* may be cut down to this many columns; 0: never cut */
    int optional; /* may be left out, the greatest first, the right one of equals; 0: never */
    bool wrap;    /* the cut part goes on in the lines below; for one column of a table */
};

struct table; /* cells are copied; rows are added cell by cell */

struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);

/* The next cell of the current row (a new row starts after the last). The text must be safe to print already. */
void table_cell(struct table *table, enum term_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends the table, titles first, as lines of at most `width` columns without trailing blanks. */
void table_format(const struct table *table, int width, bool colour, struct strbuf *out);

/* Prints it on stdout, as wide as the terminal is, and frees it. */
void table_print(struct table *table);

#endif
