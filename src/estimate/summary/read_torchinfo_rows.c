/* The table of torchinfo: a tree of names in the first column. Cells are as wide as they need to be, so that only
 * blanks tell them apart. */
#include <string.h>

#include "base/memory.h"
#include "estimate/summary/read_torchinfo.h"

static const char *const titles[TORCHINFO_COLUMN_COUNT] = {
    [TORCHINFO_KERNEL] = "Kernel Shape", [TORCHINFO_INPUT] = "Input Shape", [TORCHINFO_OUTPUT] = "Output Shape",
    [TORCHINFO_PARAMETERS] = "Param #",  [TORCHINFO_PERCENT] = "Param %",   [TORCHINFO_OPERATIONS] = "Mult-Adds",
    [TORCHINFO_TRAINABLE] = "Trainable",
};

int torchinfo_read_header(const struct reader *reader, struct torchinfo_header *header)
{
    struct slice line = reader->line;
    size_t at[TORCHINFO_COLUMN_COUNT];

    *header = (struct torchinfo_header){0};
    while (header->indent < line.length && line.text[header->indent] == ' ')
        header->indent++;
    line = slice_from(line, header->indent);
    header->has_index = slice_find(line, ":depth-idx") < line.length;
    for (int i = 0; i < TORCHINFO_COLUMN_COUNT; i++) {
        size_t found = slice_find(line, titles[i]);
        int place = header->column_count;
        if (found == line.length)
            continue;
        for (; place > 0 && at[place - 1] > found; place--) {
            at[place] = at[place - 1];
            header->columns[place] = header->columns[place - 1];
        }
        at[place] = found;
        header->columns[place] = (enum torchinfo_column)i;
        header->column_count++;
    }
    header->name_width = header->column_count > 0 ? slice_columns(slice_to(line, at[0])) : SIZE_MAX;
    if (header->column_count == 0)
        return reader_error(reader, "the torchinfo summary has no columns: print it with output_size and num_params");
    return 0;
}

/* Takes the tree's lines off the row; -1: deeper than anything that is a model. */
static int take_depth(struct slice *line)
{
    static const char *const pieces[] = {"│    ", "|    ", "├─", "└─", "+ "};
    int depth = 0;

    for (size_t i = 0; i < array_size(pieces);) {
        if (!slice_starts(*line, pieces[i])) {
            i++;
            continue;
        }
        *line = slice_from(*line, strlen(pieces[i]));
        if (++depth > TORCHINFO_MAX_DEPTH)
            return -1;
        i = 0;
    }
    return depth;
}

/* "Conv2d (conv1): 1-1" */
static void split_name(struct slice text, struct torchinfo_row *row)
{
    size_t end = text.length;

    while (end > 0 && ((text.text[end - 1] >= '0' && text.text[end - 1] <= '9') || text.text[end - 1] == '-'))
        end--;
    if (end >= 2 && end < text.length && memcmp(text.text + end - 2, ": ", 2) == 0) {
        row->index = slice_from(text, end);
        text = slice_trim(slice_to(text, end - 2));
    }
    end = slice_find(text, " (");
    if (end < text.length && slice_ends(text, ")"))
        row->variable = (struct slice){text.text + end + 2, text.length - end - 3};
    row->type = slice_to(text, end);
}

/* A cell is a word, or brackets with all that is in them. */
static struct slice take_cell(struct slice *rest)
{
    struct slice text = slice_trim(*rest);
    size_t end = 0;
    int brackets = 0;

    for (; end < text.length && (brackets > 0 || text.text[end] != ' '); end++) {
        brackets += text.text[end] == '[' || text.text[end] == '(';
        brackets -= text.text[end] == ']' || text.text[end] == ')';
    }
    *rest = slice_from(text, end);
    return slice_to(text, end);
}

int torchinfo_read_row(const struct reader *reader, const struct torchinfo_header *header, struct torchinfo_row *row)
{
    struct slice line = reader->line, rest;
    size_t blanks = 0, split;
    int cells = 0;

    *row = (struct torchinfo_row){0};
    while (blanks < header->indent && blanks < line.length && line.text[blanks] == ' ')
        blanks++;
    line = slice_from(line, blanks);
    split = slice_column(line, header->name_width);
    rest = slice_from(line, split);
    line = slice_to(line, split);
    row->depth = take_depth(&line);
    if (row->depth < 0)
        return reader_error(reader, "modules nested more than %d deep", TORCHINFO_MAX_DEPTH);
    /* the numbers of such a row hang on a tree of their own */
    row->inner = slice_find(line, "├─") < line.length || slice_find(line, "└─") < line.length ||
                 slice_find(rest, "├─") < rest.length || slice_find(rest, "└─") < rest.length;
    split_name(slice_trim(line), row);
    while (cells < header->column_count && slice_trim(rest).length > 0)
        row->cells[header->columns[cells++]] = take_cell(&rest);
    row->inner =
        row->inner || cells < header->column_count || (header->has_index && row->depth > 0 && !row->index.length);
    return 0;
}
