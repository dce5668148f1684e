/* Keras 2 and tf_keras: columns at fixed places, the header's; cells cut (before 2.8) or wrapped. Rows stand apart by a
 * rule or an empty line. Nested models' layers stand between lines of '¯', with a '|' at either end for each level. */
#include <string.h>

#include "estimate/summary/read_formats.h"
#include "estimate/summary/read_keras.h"

struct places {
    size_t at[KERAS_COLUMN_COUNT + 1]; /* characters before the column; the last has no end */
};

static int read_header(struct keras_table *table, struct places *places)
{
    static const char *const titles[] = {"Layer (type)", "Output Shape", "Param #", "Connected to", "Trainable"};
    struct slice line = table->reader->line;
    int ret;

    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        size_t found = slice_find(line, titles[i]);
        if (found == line.length)
            continue;
        places->at[table->column_count] = table->column_count > 0 ? slice_columns(slice_to(line, found)) : 0;
        ret = keras_add_column(table, slice_from(line, found));
        if (ret)
            return ret;
    }
    places->at[table->column_count] = SIZE_MAX;
    if (!table->has[KERAS_SHAPE] || !table->has[KERAS_PARAMETERS])
        return reader_error(table->reader, "the Keras summary has no output shapes or no parameters");
    return 0;
}

/* Takes the bars of nested models off both ends; returns how deep the line is. */
static size_t take_level(struct slice *line)
{
    size_t level = 0;

    while (level < line->length && line->text[level] == '|')
        level++;
    for (size_t i = 0; i < level && slice_ends(*line, "|") && line->length > level; i++)
        line->length--;
    return level;
}

/* Bars come off the first column; versions differ in whether the others then stand as many characters to the left. */
static struct slice cell_at(struct slice line, const struct places *places, int column, size_t level)
{
    size_t left = level < 2 ? level : 2, begin = places->at[column], end = places->at[column + 1];

    begin = slice_column(line, column == 0 ? level : begin - left);
    end = end == SIZE_MAX ? line.length : slice_column(line, end - left);
    return begin < end ? slice_trim((struct slice){line.text + begin, end - begin}) : (struct slice){0};
}

/* Does the line begin a row, though no rule or empty line has ended the one before? Only a first line has a count. */
static bool begins_row(const struct keras_table *table, const struct slice *cells)
{
    int64_t count;

    for (int i = 0; i < table->column_count; i++)
        if (table->columns[i] == KERAS_PARAMETERS)
            return table->cells[KERAS_PARAMETERS].length > 0 &&
                   parse_count(slice_to(cells[i], slice_find_char(cells[i], ' ')), &count);
    return false;
}

static int read_line(struct keras_table *table, const struct places *places)
{
    struct slice line = table->reader->line, cells[KERAS_COLUMN_COUNT];
    size_t level = take_level(&line);
    int ret;

    if (level > KERAS_MAX_DEPTH)
        return reader_error(table->reader, "models nested more than %d deep", KERAS_MAX_DEPTH);
    for (int i = 0; i < table->column_count; i++)
        cells[i] = cell_at(line, places, i, level);
    if (table->line > 0 && begins_row(table, cells)) {
        ret = keras_end_row(table);
        if (ret)
            return ret;
    }
    for (int i = 0; i < table->column_count; i++)
        keras_add_cell(table, table->columns[i], cells[i]);
    table->depth = (int)level;
    return 0;
}

/* Nothing, or only bars, blanks and the characters that lines are drawn with. */
static bool parts_rows(struct slice line)
{
    for (size_t i = 0; i < line.length; i++)
        if (!strchr(" \t|_", line.text[i]) && memcmp(line.text + i, "¯", i + 2 <= line.length ? 2 : 1) != 0 &&
            (i == 0 || memcmp(line.text + i - 1, "¯", 2) != 0))
            return false;
    return true;
}

static int read_table(struct keras_table *table, const struct places *places)
{
    struct reader *reader = table->reader;
    bool rows = false;
    int ret;

    while (reader_next(reader)) {
        struct slice line = slice_trim(reader->line);
        if (slice_is_rule(line, '=', 8)) {
            ret = keras_end_row(table);
            if (ret || rows)
                return ret ? ret : keras_finish(table);
            rows = true;
        } else if (parts_rows(line)) {
            ret = keras_end_row(table);
        } else {
            rows = true;
            ret = read_line(table, places);
        }
        if (ret)
            return ret;
    }
    return reader_truncated(reader, "the rule under its rows");
}

int read_keras2(struct reader *reader)
{
    struct keras_table table;
    struct places places;
    int ret;

    keras_init(&table, reader);
    ret = read_header(&table, &places);
    if (!ret)
        ret = read_table(&table, &places);
    keras_release(&table);
    return ret;
}
