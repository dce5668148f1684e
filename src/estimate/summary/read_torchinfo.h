/* torchinfo's table, cell by cell: read_torchinfo_rows.c takes rows apart, read_torchinfo.c makes layers of them.
 * Internal to read*.c. */
#ifndef CARMA_ESTIMATE_READ_TORCHINFO_H
#define CARMA_ESTIMATE_READ_TORCHINFO_H

#include "estimate/summary/read_text.h"

enum torchinfo_column {
    TORCHINFO_KERNEL,
    TORCHINFO_INPUT,
    TORCHINFO_OUTPUT,
    TORCHINFO_PARAMETERS,
    TORCHINFO_PERCENT,
    TORCHINFO_OPERATIONS,
    TORCHINFO_TRAINABLE,
    TORCHINFO_COLUMN_COUNT
};

#define TORCHINFO_MAX_DEPTH 200

struct torchinfo_header {
    enum torchinfo_column columns[TORCHINFO_COLUMN_COUNT]; /* from left to right */
    int column_count;
    size_t indent;     /* blanks before every line */
    size_t name_width; /* characters after these */
    bool has_index;    /* names end in ": DEPTH-NUMBER" */
};

struct torchinfo_row {
    int depth;
    struct slice type, variable, index;
    struct slice cells[TORCHINFO_COLUMN_COUNT]; /* by enum torchinfo_column; empty where the column is missing */
    bool inner;                                 /* a parameter of the layer above, of verbose=2 */
};

/* Of the current line; -EINVAL with err set where there are no columns. */
int torchinfo_read_header(const struct reader *reader, struct torchinfo_header *header);
int torchinfo_read_row(const struct reader *reader, const struct torchinfo_header *header, struct torchinfo_row *row);

#endif
