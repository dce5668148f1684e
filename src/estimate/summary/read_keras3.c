/* Keras 3: a table drawn with lines, each row between two rules; nested models' layers behind "└". */
#include <string.h>

#include "estimate/summary/read_formats.h"
#include "estimate/summary/read_keras.h"

/* The separator of cells; 0: none. Consoles without box drawing get '|'. */
static size_t bar_length(struct slice text)
{
    static const char *const bars[] = {"│", "┃", "|"};

    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++)
        if (slice_starts(text, bars[i]))
            return strlen(bars[i]);
    return 0;
}

static bool is_rule(struct slice line)
{
    static const char *const corners[] = {"┏", "┡", "├", "└", "┌", "┢", "╞", "╘", "+"};

    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        if (slice_starts(line, corners[i]))
            return true;
    for (size_t i = 0; i < line.length; i++)
        if (!strchr("|-+=", line.text[i]))
            return false;
    return slice_starts(line, "|-") || slice_starts(line, "|=");
}

/* Takes the next cell off a line that begins with a bar. False: there is none. */
static bool take_cell(struct slice *line, struct slice *cell)
{
    size_t bar = bar_length(*line), end;

    if (bar == 0 || bar == line->length)
        return false;
    *line = slice_from(*line, bar);
    for (end = 0; end < line->length && bar_length(slice_from(*line, end)) == 0; end++)
        ;
    if (end == line->length)
        return false;
    *cell = slice_to(*line, end);
    *line = slice_from(*line, end);
    return true;
}

static int read_header(struct keras_table *table, struct slice line)
{
    struct slice cell;
    int ret;

    while (take_cell(&line, &cell)) {
        ret = keras_add_column(table, slice_trim(cell));
        if (ret)
            return ret;
    }
    if (!table->has[KERAS_SHAPE] || !table->has[KERAS_PARAMETERS])
        return reader_error(table->reader, "the Keras summary has no output shapes or no parameters");
    return 0;
}

/* "   └ conv (Conv2D)": three blanks for each level. */
static int take_depth(struct keras_table *table, struct slice *cell)
{
    struct slice text = *cell;
    size_t blanks = 0;

    while (blanks < text.length && text.text[blanks] == ' ')
        blanks++;
    text = slice_from(text, blanks);
    if (!slice_starts(text, "└"))
        return 0;
    if (blanks / 3 > KERAS_MAX_DEPTH)
        return reader_error(table->reader, "models nested more than %d deep", KERAS_MAX_DEPTH);
    *cell = slice_from(text, strlen("└"));
    table->depth = (int)(blanks / 3);
    return 0;
}

static int read_line(struct keras_table *table, struct slice line)
{
    const bool first = table->line == 0;
    struct slice cell;
    int cells = 0, depth_ret = 0;

    for (; cells < table->column_count && take_cell(&line, &cell); cells++) {
        enum keras_column column = table->columns[cells];
        struct slice text = cell;
        keras_add_cell(table, column, (struct slice){cell.text, 0});
        if (column == KERAS_LAYER && first)
            depth_ret = take_depth(table, &text);
        if (depth_ret)
            return depth_ret;
        keras_add_cell(table, column, text);
    }
    if (cells < table->column_count)
        return reader_error(table->reader, "a row of %d cells where the header has %d", cells, table->column_count);
    return 0;
}

static int read_table(struct keras_table *table)
{
    struct reader *reader = table->reader;
    bool header = true, closed = true;
    int ret;

    while (reader_next(reader)) {
        struct slice line = slice_trim(reader->line);
        if (is_rule(line)) {
            ret = keras_end_row(table);
            if (ret)
                return ret;
            header = false;
            closed = true;
        } else if (bar_length(line) > 0) {
            ret = header ? 0 : read_line(table, line); /* a title may need two lines */
            if (ret)
                return ret;
            closed = false;
        } else if (closed && slice_starts(line, "Total params")) {
            return keras_finish(table);
        } else if (line.length > 0) {
            return reader_error(reader, "the table is broken off: a row or a rule is expected");
        }
    }
    return reader_truncated(reader, "the end of its table");
}

int read_keras3(struct reader *reader)
{
    struct keras_table table;
    int ret;

    keras_init(&table, reader);
    ret = read_header(&table, slice_trim(reader->line));
    if (!ret)
        ret = read_table(&table);
    keras_release(&table);
    return ret;
}
