#include "cli/show/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define GAP 2

struct cell {
    char *text;
    size_t width;
    enum term_style style;
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    struct cell *cells; /* row by row */
    size_t cell_count;
    size_t capacity;
};

struct table *table_new(const struct table_column *columns, size_t count)
{
    struct table *table = xcalloc(1, sizeof *table);

    table->columns = columns;
    table->column_count = count;
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
    free(table);
}

void table_cell(struct table *table, enum term_style style, const char *format, ...)
{
    struct cell *cell;
    va_list args;
    char *text;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    array_reserve(table->cells, table->capacity, table->cell_count + 1);
    cell = &table->cells[table->cell_count++];
    *cell = (struct cell){.text = text, .width = term_text_width(text), .style = style};
}

static size_t total_width(const struct table *table, const size_t *widths, const bool *shown)
{
    size_t total = 0;

    for (size_t c = 0; c < table->column_count; c++) {
        if (shown[c])
            total += widths[c] + (total ? GAP : 0);
    }
    return total;
}

/* Takes columns from the widest that may shrink; false where none may. */
static bool shrink_one(const struct table *table, size_t *widths, const bool *shown)
{
    size_t best = table->column_count;

    for (size_t c = 0; c < table->column_count; c++) {
        int minimum = table->columns[c].minimum;
        if (shown[c] && minimum && widths[c] > (size_t)minimum &&
            (best == table->column_count || widths[c] > widths[best]))
            best = c;
    }
    if (best == table->column_count)
        return false;
    widths[best]--;
    return true;
}

static bool drop_one(const struct table *table, bool *shown)
{
    size_t best = table->column_count;

    for (size_t c = 0; c < table->column_count; c++) {
        int rank = table->columns[c].optional;
        if (shown[c] && rank && (best == table->column_count || rank >= table->columns[best].optional))
            best = c;
    }
    if (best == table->column_count)
        return false;
    shown[best] = false;
    return true;
}

static void natural_widths(const struct table *table, size_t *widths)
{
    for (size_t c = 0; c < table->column_count; c++)
        widths[c] = strlen(table->columns[c].title);
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t c = i % table->column_count;
        if (table->cells[i].width > widths[c])
            widths[c] = table->cells[i].width;
    }
}

static void fit(const struct table *table, size_t limit, size_t *widths, bool *shown)
{
    for (size_t c = 0; c < table->column_count; c++)
        shown[c] = true;
    do {
        natural_widths(table, widths);
        while (total_width(table, widths, shown) > limit && shrink_one(table, widths, shown))
            ;
    } while (total_width(table, widths, shown) > limit && drop_one(table, shown));
}

static void put_cell(const struct table_column *column, const struct cell *cell, size_t width, bool colour,
                     struct strbuf *out)
{
    CLEANUP(free_ptr) char *shorter = cell->width > width ? term_cut(cell->text, width) : NULL;
    const char *text = shorter ? shorter : cell->text;
    int padding = shorter ? 0 : (int)(width - cell->width);

    if (column->right)
        strbuf_printf(out, "%*s", padding, "");
    if (colour && cell->style != STYLE_NONE && *text)
        strbuf_printf(out, "%s%s" TERM_STYLE_END, term_style_start(cell->style), text);
    else
        strbuf_puts(out, text);
    if (!column->right)
        strbuf_printf(out, "%*s", padding, "");
}

static void trim_end(struct strbuf *out)
{
    while (out->length && out->text[out->length - 1] == ' ')
        out->text[--out->length] = '\0';
}

static void put_line(const struct table *table, const struct cell *cells, const size_t *widths, const bool *shown,
                     bool colour, struct strbuf *out)
{
    bool first = true;

    for (size_t c = 0; c < table->column_count; c++) {
        if (!shown[c])
            continue;
        if (!first)
            strbuf_printf(out, "%*s", GAP, "");
        first = false;
        put_cell(&table->columns[c], &cells[c], widths[c], colour, out);
    }
    trim_end(out);
    strbuf_puts(out, "\n");
}

/* The row's cells; where one wraps, lines with the rest of it alone follow. */
static void put_row(const struct table *table, const struct cell *row, const size_t *widths, const bool *shown,
                    bool colour, struct strbuf *out)
{
    static char nothing[] = "";
    CLEANUP(free_ptr) struct cell *cells = xcalloc(table->column_count, sizeof *cells);
    const char *rest = nothing;
    size_t wrapped = 0;

    memcpy(cells, row, table->column_count * sizeof *cells);
    for (size_t c = 0; c < table->column_count; c++) {
        if (table->columns[c].wrap && shown[c] && cells[c].width > widths[c]) {
            rest = cells[c].text;
            wrapped = c;
        }
    }
    do {
        CLEANUP(free_ptr) char *piece = *rest ? term_take_line(&rest, widths[wrapped]) : NULL;
        if (piece)
            cells[wrapped] = (struct cell){.text = piece, .width = term_text_width(piece), .style = row[wrapped].style};
        put_line(table, cells, widths, shown, colour, out);
        for (size_t c = 0; c < table->column_count; c++)
            cells[c] = (struct cell){.text = nothing};
    } while (*rest);
}

void table_format(const struct table *table, int width, bool colour, struct strbuf *out)
{
    CLEANUP(free_ptr) size_t *widths = xcalloc(table->column_count, sizeof *widths);
    CLEANUP(free_ptr) bool *shown = xcalloc(table->column_count, sizeof *shown);
    CLEANUP(free_ptr) struct cell *titles = xcalloc(table->column_count, sizeof *titles);

    fit(table, (size_t)width, widths, shown);
    for (size_t c = 0; c < table->column_count; c++) {
        const char *title = table->columns[c].title;
        titles[c] = (struct cell){.text = (char *)(uintptr_t)title, .width = strlen(title), .style = STYLE_BOLD};
    }
    put_line(table, titles, widths, shown, colour, out);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count)
        put_row(table, &table->cells[i], widths, shown, colour, out);
}

void table_print(struct table *table)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    table_format(table, term_width(stdout), term_colour(stdout), &out);
    table_free(table);
    fputs(out.text, stdout);
}
