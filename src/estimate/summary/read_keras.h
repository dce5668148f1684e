/* Common to the tables of Keras 2 and 3: rows of cells wrapped over several lines, and shapes with the channels last.
 * Connections are by name; running statistics count as parameters. Internal to read*.c. */
#ifndef CARMA_ESTIMATE_READ_KERAS_H
#define CARMA_ESTIMATE_READ_KERAS_H

#include "base/strbuf.h"
#include "estimate/summary/read_footer.h"

enum keras_column {
    KERAS_LAYER,
    KERAS_SHAPE,
    KERAS_PARAMETERS,
    KERAS_CONNECTIONS,
    KERAS_TRAINABLE,
    KERAS_COLUMN_COUNT
};

#define KERAS_MAX_DEPTH 100
#define KERAS_CUT       "…" /* a table's mark for a cell that it cannot show */

/* A layer's cell "Connected to": where it lies in keras_table.connections. */
struct keras_link {
    size_t begin, end;
    bool name_cut; /* the layer's own name is not whole */
};

struct keras_table {
    struct reader *reader;
    struct footer footer;
    enum keras_column columns[KERAS_COLUMN_COUNT]; /* from left to right */
    int column_count;
    bool has[KERAS_COLUMN_COUNT];
    /* the row being read */
    struct strbuf cells[KERAS_COLUMN_COUNT]; /* owned; by enum keras_column, without blanks */
    uint32_t line;                           /* its first; 0: none */
    int depth;
    /* all rows */
    struct keras_link *links; /* owned; of each layer */
    size_t link_capacity;
    struct strbuf connections; /* owned; their text, one after the other */
    int64_t statistics;        /* running means and variances, which Keras counts as parameters */
};

void keras_init(struct keras_table *table, struct reader *reader);
void keras_release(struct keras_table *table);

/* A column headed `title`, or the beginning of it; -EINVAL with err set where the column is not one of Keras'. */
int keras_add_column(struct keras_table *table, struct slice title);

/* One line's part of a cell of the row being read, which it begins where there is none. */
void keras_add_cell(struct keras_table *table, enum keras_column column, struct slice text);

/* The row is complete: it becomes a layer. Without a row, nothing. */
int keras_end_row(struct keras_table *table);

/* Reads the totals, from the line at hand on, and completes the list. */
int keras_finish(struct keras_table *table);

/* read_keras_kinds.c: the kinds of Keras' types (`cut`: only the type's beginning is known). */
void keras_set_kind(struct layer *layer, bool cut);

/* read_keras_kinds.c: channels first; running statistics (the sum of which it returns) off the parameters. */
int64_t keras_convert(struct layer_list *list);

/* read_keras_links.c: names to indices. A layer has no inputs where one of them is not found. */
void keras_connect(struct keras_table *table);

#endif
