/* torchinfo to 1.8, and torch-summary, from which it comes: a tree of modules in the first column (├─, │, └─ or +, |),
 * parents before their children. Any of seven columns follow in any order. A parent's parameters are those that its
 * children have not; at the depth where the tree is cut off, all that are below. Cells are as wide as they need to be:
 * told apart by blanks, not by their place.
 */
#include <errno.h>
#include <string.h>

#include "estimate/summary/read_footer.h"
#include "estimate/summary/read_formats.h"
#include "estimate/summary/read_input.h"
#include "estimate/summary/read_torchinfo.h"

#define MEGABYTE 1e6

struct table {
    struct torchinfo_header header;
    struct footer footer;
    bool old;           /* before 1.7: the model's own row has no shape */
    int64_t parameters; /* of all rows */
    int skip_below;     /* rows deeper than this belong to a layer already taken as a whole; -1: none do */
    int deepest;
    struct slice path[TORCHINFO_MAX_DEPTH + 1]; /* variable names down to the row at hand */
};

static int read_kernel(const struct reader *reader, struct layer *layer, struct slice cell)
{
    struct shape shape;
    int ret = parse_shape(reader, cell, &shape), spatial = layer->rank > 1 ? layer->rank - 1 : 0;
    int64_t same;

    if (ret || spatial > 3 ||
        (layer->kind != LAYER_CONV && layer->kind != LAYER_CONV_TRANSPOSE && layer->kind != LAYER_MAX_POOL &&
         layer->kind != LAYER_AVG_POOL))
        return ret;
    if (!shape.known && parse_count(cell, &same) && same <= INT32_MAX)
        for (int i = 0; i < spatial; i++)
            layer->kernel[i] = (int32_t)same;
    /* the last ones: a weight's own shape has the channels in front */
    for (int i = 0; i < spatial && spatial <= shape.rank; i++) {
        int64_t size = shape.dims[shape.rank - spatial + i];
        layer->kernel[i] = size > 0 && size <= INT32_MAX ? (int32_t)size : 0;
    }
    return 0;
}

static int read_shape(struct reader *reader, struct layer *layer, struct slice cell)
{
    struct layer_list *list = reader->list;
    struct shape shape;
    int ret = parse_shape(reader, cell, &shape);

    if (ret || !shape.known)
        return ret;
    if (list->batch_size < 1 && shape.rank > 0 && shape.dims[0] > 0)
        list->batch_size = shape.dims[0];
    return layer_set_batched_shape(reader, layer, &shape, list->batch_size);
}

/* A layer's input gives the number of channels that it reads; the first layer's gives the model's input. */
static int read_input(struct reader *reader, struct layer *layer, struct slice cell)
{
    struct layer_list *list = reader->list;
    struct layer input = {0};
    int ret = read_shape(reader, &input, cell);

    if (ret || !input.shape_known)
        return ret;
    if (layer->kind == LAYER_CONV || layer->kind == LAYER_CONV_TRANSPOSE)
        layer->in_channels = input.shape[0];
    else if (layer->kind == LAYER_LINEAR)
        layer->in_channels = input.shape[input.rank - 1];
    if (list->input_rank == 0) {
        memcpy(list->input, input.shape, sizeof list->input);
        list->input_rank = input.rank;
    }
    return 0;
}

static int read_parameters(const struct reader *reader, struct layer *layer, const struct torchinfo_row *row)
{
    struct slice cell = row->cells[TORCHINFO_PARAMETERS];

    layer->frozen = slice_is(row->cells[TORCHINFO_TRAINABLE], "False");
    if (slice_is(cell, "(recursive)"))
        layer->heads = ATTENTION_COUNTED;
    if (cell.length == 0 || slice_is(cell, "--") || slice_is(cell, "(recursive)"))
        return 0;
    if (slice_starts(cell, "(") && slice_ends(cell, ")")) {
        layer->frozen = true;
        cell = (struct slice){cell.text + 1, cell.length - 2};
    }
    return parse_parameters(reader, cell, reader->number, &layer->parameters);
}

/* "layer1.0.conv1" of the variables' names, or the summary's own number. */
static struct slice row_name(struct table *table, const struct torchinfo_row *row, char text[static LAYER_NAME_SIZE])
{
    table->path[row->depth] = row->variable;
    if (row->depth == 0 || row->variable.length == 0)
        return row->index;
    return join_path(text, table->path + 1, row->depth);
}

/* The layer before turns out to have children. A layer keeps the kind of its type, if it has parameters of its own or
 * they are only its projection. Else it is a container, and the remainder is a bare parameter. */
static int become_parent(struct reader *reader, struct table *table, size_t parent, const struct torchinfo_row *child)
{
    struct layer *layer = &reader->list->items[parent], *rest;
    const bool projection = slice_is(child->type, "NonDynamicallyQuantizableLinear");

    if (layer->kind == LAYER_ATTENTION && (layer->parameters > 0 || projection)) {
        table->skip_below = layer->depth;
        return 0;
    }
    if (layer->kind != LAYER_UNKNOWN && layer->parameters > 0)
        return 0;
    layer->container = true;
    if (layer->parameters == 0)
        return 0;
    rest = reader_add(reader, LAYER_PARAMETER, SLICE("Parameter"), (struct slice){layer->name, strlen(layer->name)},
                      reader->lines[parent]);
    if (!rest)
        return -EINVAL;
    layer = &reader->list->items[parent]; /* the list may have moved */
    rest->depth = layer->depth + 1;
    rest->parameters = layer->parameters;
    rest->frozen = layer->frozen;
    layer->parameters = 0;
    return 0;
}

static int add_layer(struct reader *reader, struct table *table, const struct torchinfo_row *row)
{
    char text[LAYER_NAME_SIZE];
    enum activation activation;
    struct layer *layer = reader_add(reader, LAYER_UNKNOWN, row->type, row_name(table, row, text), reader->number);
    int ret;

    if (!layer)
        return -EINVAL;
    layer->depth = (uint8_t)row->depth;
    layer->kind = (uint8_t)layer_kind_of_type(layer->type, &activation);
    layer->activation = (uint8_t)activation;
    ret = read_parameters(reader, layer, row);
    if (!ret)
        ret = read_input(reader, layer, row->cells[TORCHINFO_INPUT]);
    if (!ret)
        ret = read_shape(reader, layer, row->cells[TORCHINFO_OUTPUT]);
    if (!ret)
        ret = read_kernel(reader, layer, row->cells[TORCHINFO_KERNEL]);
    table->parameters += layer->parameters;
    return ret;
}

static int read_row(struct reader *reader, struct table *table)
{
    struct layer_list *list = reader->list;
    char quoted[QUOTE_SIZE];
    struct torchinfo_row row;
    int ret = torchinfo_read_row(reader, &table->header, &row);

    if (ret || row.inner)
        return ret;
    if (row.type.length == 0)
        return reader_error(reader, "'%s' is not a row of torchinfo", quote(quoted, slice_trim(reader->line)));
    if (row.depth > table->deepest)
        table->deepest = row.depth;
    /* early versions list modules again that are called elsewhere */
    if (slice_is(row.cells[TORCHINFO_PARAMETERS], "(recursive)") && slice_is(row.cells[TORCHINFO_OUTPUT], "--"))
        return 0;
    if (list->count > 0 && table->skip_below < 0 && row.depth > list->items[list->count - 1].depth) {
        ret = become_parent(reader, table, list->count - 1, &row);
        if (ret)
            return ret;
    }
    if (table->skip_below >= 0 && row.depth > table->skip_below) {
        struct layer part = {0};
        ret = read_parameters(reader, &part, &row);
        list->items[list->count - 1].parameters += part.parameters;
        table->parameters += part.parameters;
        return ret;
    }
    table->skip_below = -1;
    return add_layer(reader, table, &row);
}

/* Modules that were not called when the others were: their parameters are there, their outputs are not. */
static void drop_uncalled(struct reader *reader)
{
    struct layer_list *list = reader->list;
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct layer *layer = &list->items[i];
        if (!layer->container && !layer->shape_known) {
            if (layer->parameters == 0)
                continue;
            layer->kind = LAYER_PARAMETER;
            layer->activation = ACTIVATION_NONE;
        }
        reader->lines[kept] = reader->lines[i];
        list->items[kept++] = *layer;
    }
    list->count = kept;
}

/* May a layer hold others, deeper than is shown? */
static bool has_hidden(const struct layer_list *list, const struct table *table)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        if (!layer->container && layer->kind == LAYER_UNKNOWN && layer->depth == table->deepest &&
            layer->parameters > 0)
            return true;
    }
    return false;
}

static int check_rows(struct reader *reader, const struct table *table, bool hidden)
{
    const struct footer_value *total = &table->footer.counts[FOOTER_TOTAL];
    bool shown = false;

    for (int i = 0; i < table->header.column_count; i++)
        shown = shown || table->header.columns[i] == TORCHINFO_PARAMETERS;
    if (!shown)
        return 0;
    /* modules used twice below the depth shown, and modules that early versions leave out of the total */
    if ((hidden || table->old) && (double)table->parameters > total->value + total->slack) {
        reader_warn(reader, total->line, "the rows have %lld parameters in all, the total says %.0f",
                    (long long)table->parameters, total->value);
        return 0;
    }
    return footer_check_rows(&table->footer, reader, table->parameters);
}

static int finish(struct reader *reader, struct table *table)
{
    const struct footer_value *input = &table->footer.sizes[FOOTER_INPUT];
    struct layer_list *list = reader->list;
    const bool called = input->line > 0;
    double scale;
    bool hidden;
    int ret = footer_check(&table->footer, reader);

    if (ret)
        return ret;
    table->old = called && list->count > 0 && list->items[0].container && !list->items[0].shape_known;
    if (called)
        drop_uncalled(reader);
    hidden = has_hidden(list, table);
    ret = check_rows(reader, table, hidden);
    if (ret)
        return ret;
    footer_apply(&table->footer, reader, 0);
    fill_attention(reader);
    /* its ancestor leaves the batch open and means 1024 * 1024 bytes by MB */
    scale = list->batch_size < 1 ? 1048576.0 / MEGABYTE : 1;
    if (called)
        input_from_bytes(list, scale * input->value, scale * input->slack);
    return 0;
}

int read_torchinfo(struct reader *reader)
{
    struct table table = {.skip_below = -1};
    bool counted = false;
    int ret = torchinfo_read_header(reader, &table.header), rules = 0;

    if (ret)
        return ret;
    while (reader_next(reader)) {
        struct slice line = slice_trim(reader->line);
        if (line.length == 0)
            continue;
        if (slice_is_rule(line, '=', 8)) {
            /* without an input there are no sizes after the counts */
            counted = table.footer.counts[FOOTER_NON_TRAINABLE].line > 0;
            if (counted && !table.footer.operations.line)
                return finish(reader, &table);
            rules++;
            continue;
        }
        ret = rules < 2 ? read_row(reader, &table) : footer_read_line(&table.footer, reader, MEGABYTE);
        if (ret < 0)
            return ret;
        if (table.footer.sizes[FOOTER_SUM].line)
            return finish(reader, &table);
    }
    return reader_truncated(reader, rules < 2 ? "the rule under its rows" : "the end of its totals");
}
