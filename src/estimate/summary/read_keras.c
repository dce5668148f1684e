#include "estimate/summary/read_keras.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/summary/read_input.h"

#define MEGABYTE 1048576.0

void keras_init(struct keras_table *table, struct reader *reader)
{
    *table = (struct keras_table){.reader = reader};
}

void keras_release(struct keras_table *table)
{
    for (int i = 0; i < KERAS_COLUMN_COUNT; i++)
        strbuf_release(&table->cells[i]);
    strbuf_release(&table->connections);
    free(table->links);
}

int keras_add_column(struct keras_table *table, struct slice title)
{
    static const char *const beginnings[KERAS_COLUMN_COUNT] = {"Layer", "Output", "Param", "Connected", "Trainable"};
    char quoted[QUOTE_SIZE];
    size_t end = slice_find(title, KERAS_CUT); /* where it is too narrow even for its title */

    for (int i = 0; i < KERAS_COLUMN_COUNT; i++) {
        struct slice beginning = {beginnings[i], strlen(beginnings[i])};
        if (table->has[i] || end < 1 || (end == title.length && end < beginning.length) ||
            memcmp(title.text, beginning.text, end < beginning.length ? end : beginning.length) != 0)
            continue;
        table->has[i] = true;
        table->columns[table->column_count++] = (enum keras_column)i;
        return 0;
    }
    return reader_error(table->reader, "'%s' is not a column of Keras' summary", quote(quoted, title));
}

void keras_add_cell(struct keras_table *table, enum keras_column column, struct slice text)
{
    if (table->line == 0) {
        table->line = table->reader->number;
        table->depth = 0;
        for (int i = 0; i < KERAS_COLUMN_COUNT; i++)
            strbuf_clear(&table->cells[i]);
    }
    text = slice_trim(text);
    /* early versions have one connection in a line, without commas */
    if (column == KERAS_CONNECTIONS && text.length > 0 && !strchr("[],' ", *text.text) &&
        table->cells[column].length > 0 && table->cells[column].text[table->cells[column].length - 1] == ']')
        strbuf_puts(&table->cells[column], ",");
    for (size_t i = 0; i < text.length; i++)
        if (text.text[i] != ' ' && text.text[i] != '\t')
            strbuf_append(&table->cells[column], text.text + i, 1);
}

static struct slice cell_of(const struct keras_table *table, enum keras_column column)
{
    const struct strbuf *cell = &table->cells[column];

    return cell->length > 0 ? (struct slice){cell->text, cell->length} : SLICE("");
}

/* "0(unbuilt)", "0(unused)" and plain numbers */
static int read_parameters(struct keras_table *table, struct layer *layer)
{
    struct slice cell = cell_of(table, KERAS_PARAMETERS);
    int ret;

    cell = slice_to(cell, slice_find_char(cell, '('));
    ret = parse_parameters(table->reader, cell, table->line, &layer->parameters);
    layer->frozen = slice_is(cell_of(table, KERAS_TRAINABLE), "N");
    return ret;
}

/* Takes the mark off a cut text. */
static bool take_cut(struct slice *text)
{
    if (!slice_ends(*text, KERAS_CUT))
        return false;
    text->length -= strlen(KERAS_CUT);
    return true;
}

static void add_link(struct keras_table *table, bool name_cut)
{
    struct slice cell = cell_of(table, KERAS_CONNECTIONS);
    size_t index = table->reader->list->count - 1, begin = table->connections.length;

    array_reserve(table->links, table->link_capacity, index + 1);
    if (cell.length > 0)
        strbuf_append(&table->connections, cell.text, cell.length);
    table->links[index] = (struct keras_link){begin, table->connections.length, name_cut};
}

/* "name(Type)", either cut where it is too long. */
static struct layer *add_layer(struct keras_table *table)
{
    struct slice cell = cell_of(table, KERAS_LAYER), name, type;
    size_t open = cell.length, end;
    bool name_cut, type_cut;
    struct layer *layer;

    while (open > 0 && cell.text[open - 1] != '(')
        open--;
    name = slice_to(cell, open > 0 ? open - 1 : cell.length);
    type = slice_from(cell, open > 0 ? open : cell.length);
    end = slice_find_char(type, ')');
    type_cut = end == type.length;
    type = slice_to(type, end);
    type_cut = take_cut(&type) || type_cut;
    name_cut = take_cut(&name) || open == 0;
    layer = reader_add(table->reader, LAYER_UNKNOWN, type.length > 0 ? type : SLICE("?"), name, table->line);
    if (!layer)
        return NULL;
    keras_set_kind(layer, type_cut);
    add_link(table, name_cut);
    return layer;
}

static int read_shape(struct keras_table *table, struct layer *layer)
{
    struct layer_list *list = table->reader->list;
    struct shape shape;
    int ret = parse_shape(table->reader, cell_of(table, KERAS_SHAPE), &shape);

    if (ret || !shape.known)
        return ret;
    if (shape.rank > 0 && shape.dims[0] > 0 && list->count == 1)
        list->batch_size = shape.dims[0];
    ret = layer_set_shape(table->reader, layer, shape.dims + 1, shape.rank > 0 ? shape.rank - 1 : 0);
    /* a picture of any size: its channels at least */
    if (!ret && !layer->shape_known && shape.dims[shape.rank - 1] > 0) {
        layer->rank = 1;
        layer->shape[0] = shape.dims[shape.rank - 1];
    }
    return ret;
}

int keras_end_row(struct keras_table *table)
{
    struct layer_list *list = table->reader->list;
    struct layer *layer;
    int ret;

    if (table->line == 0)
        return 0;
    layer = add_layer(table);
    if (!layer)
        return -EINVAL;
    layer->depth = (uint8_t)table->depth;
    if (list->count > 1 && layer->depth > layer[-1].depth)
        layer[-1].container = true;
    ret = read_parameters(table, layer);
    if (!ret)
        ret = read_shape(table, layer);
    table->line = 0;
    return ret;
}

/* From the current line up to the first that is not the footer's. */
static int read_footer(struct keras_table *table)
{
    struct reader *reader = table->reader;
    const struct footer_value *counts = table->footer.counts;
    int ret;

    do {
        struct slice line = slice_trim(reader->line);
        ret = footer_read_line(&table->footer, reader, MEGABYTE);
        if (ret < 0)
            return ret;
        /* Keras 3 adds the optimizer's */
        if (counts[FOOTER_NON_TRAINABLE].line && ret == 0 && line.length > 0)
            break;
        if (counts[FOOTER_OPTIMIZER].line)
            break;
    } while (reader_next(reader));
    if (!counts[FOOTER_NON_TRAINABLE].line ||
        (reader->summary->format == SUMMARY_KERAS3 && reader->next == reader->end && !counts[FOOTER_OPTIMIZER].line &&
         counts[FOOTER_TOTAL].value > counts[FOOTER_TRAINABLE].value + counts[FOOTER_NON_TRAINABLE].value))
        return reader_truncated(reader, "the end of its totals");
    return 0;
}

static int check_rows(struct keras_table *table)
{
    const struct footer_value *total = &table->footer.counts[FOOTER_TOTAL];
    struct reader *reader = table->reader;
    int64_t parameters = 0;
    bool nested = false;

    for (size_t i = 0; i < reader->list->count; i++) {
        nested = nested || reader->list->items[i].container;
        if (!reader->list->items[i].container)
            parameters += reader->list->items[i].parameters;
    }
    /* layers that several of the nested models share */
    if (nested && (double)parameters > total->value - table->footer.counts[FOOTER_OPTIMIZER].value) {
        reader_warn(reader, total->line, "the rows have %lld parameters in all, the total says %.0f",
                    (long long)parameters, total->value);
        return 0;
    }
    return footer_check_rows(&table->footer, reader, parameters);
}

/* The model's input is its first input layer; without one, it follows from the first layer. */
static void set_input(struct layer_list *list)
{
    const struct layer *first = NULL;

    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        if (layer->kind == LAYER_INPUT && layer->shape_known && list->input_rank == 0) {
            memcpy(list->input, layer->shape, sizeof list->input);
            list->input_rank = layer->rank;
        }
        if (!first && layer->kind != LAYER_INPUT && !layer->container)
            first = layer;
    }
    input_from_bytes(list, 0, INFINITY);
    list->input_is_index = first && first->kind == LAYER_EMBEDDING;
}

int keras_finish(struct keras_table *table)
{
    struct reader *reader = table->reader;
    int ret = read_footer(table);

    if (!ret)
        ret = footer_check(&table->footer, reader);
    if (!ret)
        ret = check_rows(table);
    if (ret)
        return ret;
    footer_apply(&table->footer, reader, keras_convert(reader->list));
    if (table->has[KERAS_CONNECTIONS])
        keras_connect(table);
    set_input(reader->list);
    return 0;
}
