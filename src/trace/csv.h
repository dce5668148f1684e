/* Bounded reading of CSV files, packed by gzip or not. They have lines of RFC 4180 fields (quotes, no line breaks
 * inside them) under a header line of known columns. `#` comment lines and blank lines are ignored. A hostile file is
 * refused in bounded time and memory with one line "FILE:LINE: ...". */
#ifndef CARMA_TRACE_CSV_H
#define CARMA_TRACE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CSV_MAX_BYTES   ((size_t)64 << 20)  /* of the file as it lies */
#define CSV_MAX_TEXT    ((size_t)256 << 20) /* of the unpacked gzip file */
#define CSV_MAX_LINE    ((size_t)64 << 10)
#define CSV_MAX_ROWS    1000000
#define CSV_MAX_COLUMNS 64

struct csv_column {
    const char *name;
    bool required; /* else the column, or a row's value, may be missing */
};

/* One kind of file. */
struct csv_table {
    const struct csv_column *columns;
    size_t count;
    size_t mark; /* its column by which the kind is known */
};

struct csv {
    size_t table;     /* which of the tables this file has */
    const char *path; /* borrowed; for messages */
    char *text;       /* owned */
    char *next;       /* the rest of text */
    char *end;
    unsigned line;                    /* of the row at hand, from 1 */
    size_t rows;                      /* data rows so far */
    const struct csv_column *columns; /* borrowed */
    size_t column_count;
    size_t field_count;                  /* in the file's header */
    size_t column_of[CSV_MAX_COLUMNS];   /* the file's field -> index into columns */
    const char *values[CSV_MAX_COLUMNS]; /* the row's value of each of `columns`; "" where missing */
};

/* Reads the file and its header; the columns may come in any order. A file is of the first table unless its header has
 * the mark of a later one. path and the tables' columns must outlive csv. */
int csv_open(struct csv *csv, const char *path, const struct csv_table *tables, size_t table_count, struct error *err);

/* The same on a copy of `length` bytes that the caller has; `path` is the name in messages. */
int csv_open_text(struct csv *csv, const char *path, const char *text, size_t length, const struct csv_table *tables,
                  size_t table_count, struct error *err);

/* 1: csv->values hold the next row (until the next call); 0: no more; or a negative errno. */
int csv_next(struct csv *csv, struct error *err);

/* "FILE:LINE: " before a message about the row at hand. Returns -EINVAL. */
#define csv_error(csv, err, ...) error_set_at(err, (csv)->path, (csv)->line, __VA_ARGS__)

/* The row's decimal number in `column` within [low, high], times `factor`, rounded; `missing` where it is empty. */
int csv_number(const struct csv *csv, size_t column, double low, double high, double factor, int64_t missing,
               int64_t *value, struct error *err);

/* The same for whole numbers. */
int csv_integer(const struct csv *csv, size_t column, int64_t low, int64_t high, int64_t missing, int64_t *value,
                struct error *err);

void csv_release(struct csv *csv);

#endif
