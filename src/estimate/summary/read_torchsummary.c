/* torchsummary 1.5: columns "Layer (type)", "Output Shape", "Param #" right-aligned. Every module has a row when its
 * forward ends, children before parents, but for Sequential and the model itself. A row's parameters are its `weight`
 * and `bias` alone. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "estimate/summary/read_footer.h"
#include "estimate/summary/read_formats.h"
#include "estimate/summary/read_input.h"

#define MEGABYTE 1048576.0

struct table {
    struct footer footer;
    int64_t parameters;
    double elements;     /* of all outputs, as torchsummary counts them */
    bool elements_known; /* it multiplies the shapes of several outputs */
};

/* "Conv2d-1": the type is the text before the last '-'. */
static struct slice type_of(struct slice name)
{
    size_t end = name.length;

    while (end > 0 && name.text[end - 1] >= '0' && name.text[end - 1] <= '9')
        end--;
    return end > 1 && end < name.length && name.text[end - 1] == '-' ? slice_to(name, end - 1) : (struct slice){0};
}

static void add_elements(struct table *table, struct slice shape_text, const struct shape *shape)
{
    double elements = 1;

    if (slice_starts(shape_text, "[["))
        table->elements_known = false;
    for (int i = 0; i < shape->rank; i++)
        elements *= (double)shape->dims[i];
    table->elements += elements;
}

/* The first row with a batch size gives it for all. */
static void note_batch(struct reader *reader, struct slice shape_text, const struct shape *shape)
{
    if (reader->list->batch_size < 1 && !slice_starts(shape_text, "[[") && shape->rank > 0 && shape->dims[0] > 0)
        reader->list->batch_size = shape->dims[0];
}

/* torch's and torchvision's own attention never calls its projections; others are made of Linear, which have rows. */
static bool is_whole_attention(const char *type)
{
    return strcmp(type, "MultiheadAttention") == 0 || strncmp(type, "ShiftedWindowAttention", 22) == 0;
}

/* A module without a weight of its own that is not of a layer's type holds other layers, which stand before it. */
static bool is_container(const struct layer *layer, size_t before)
{
    if (layer->parameters > 0 || before == 0)
        return false;
    return layer->kind == LAYER_UNKNOWN || (layer->kind == LAYER_ATTENTION && !is_whole_attention(layer->type));
}

static int read_row(struct reader *reader, struct table *table)
{
    struct slice line = slice_trim(reader->line), name, type, shape_text;
    size_t begin = slice_find_char(line, '['), length;
    char quoted[QUOTE_SIZE];
    struct layer *layer;
    struct shape shape;
    enum activation activation;
    int ret;

    name = slice_trim(slice_to(line, begin));
    type = type_of(name);
    length = slice_closing(slice_from(line, begin), '[', ']') + 1;
    if (type.length == 0 || begin + length > line.length)
        return reader_error(reader, "'%s' is not a row of torchsummary (TYPE-NUMBER, [SHAPE], parameters)",
                            quote(quoted, line));
    shape_text = slice_to(slice_from(line, begin), length);
    ret = parse_shape(reader, shape_text, &shape);
    if (ret)
        return ret;
    layer = reader_add(reader, LAYER_UNKNOWN, type, name, reader->number);
    if (!layer)
        return -EINVAL;
    layer->kind = (uint8_t)layer_kind_of_type(layer->type, &activation);
    layer->activation = (uint8_t)activation;
    ret = parse_parameters(reader, slice_trim(slice_from(line, begin + length)), reader->number, &layer->parameters);
    if (ret)
        return ret;
    table->parameters += layer->parameters;
    add_elements(table, shape_text, &shape);
    note_batch(reader, shape_text, &shape);
    layer->container = is_container(layer, reader->list->count - 1);
    /* the batch is always in front, if only as -1 */
    return layer_set_shape(reader, layer, shape.dims + 1, shape.rank > 0 ? shape.rank - 1 : 0);
}

static int check_pass(const struct table *table, const struct reader *reader)
{
    const struct footer_value *pass = &table->footer.sizes[FOOTER_PASS];
    double bytes = fabs(2 * 4 * table->elements);

    if (table->elements_known && fabs(bytes - pass->value) > pass->slack + 1e-9 * bytes)
        return reader_contradiction(
            reader, pass->line,
            "the rows' outputs are %.2f MB forward and backward, the footer says %.2f: has a part "
            "been left out?",
            bytes / MEGABYTE, pass->value / MEGABYTE);
    return 0;
}

/* torchsummary does not see parameters that are not called weight or bias. */
static void warn_recurrent(struct reader *reader)
{
    for (size_t i = 0; i < reader->list->count; i++) {
        const struct layer *layer = &reader->list->items[i];
        if (layer->kind != LAYER_RECURRENT || layer->parameters > 0)
            continue;
        reader_warn(reader, reader->lines[i], "torchsummary does not count the parameters of %s: they are missing",
                    layer->type);
        return;
    }
}

static int finish(struct reader *reader, struct table *table)
{
    const struct footer_value *input = &table->footer.sizes[FOOTER_INPUT];
    int ret = footer_check(&table->footer, reader);

    if (!ret)
        ret = footer_check_rows(&table->footer, reader, table->parameters);
    if (!ret)
        ret = check_pass(table, reader);
    if (ret)
        return ret;
    footer_apply(&table->footer, reader, 0);
    warn_recurrent(reader);
    fill_attention(reader);
    input_from_bytes(reader->list, input->value, input->slack);
    return 0;
}

int read_torchsummary(struct reader *reader)
{
    struct table table = {.elements_known = true};
    int ret, rules = 0;

    while (reader_next(reader)) {
        struct slice line = slice_trim(reader->line);
        if (line.length == 0)
            continue;
        if (slice_is_rule(line, '=', 8) || slice_is_rule(line, '-', 8)) {
            rules++;
            continue;
        }
        ret = rules < 2 ? read_row(reader, &table) : footer_read_line(&table.footer, reader, MEGABYTE);
        if (ret < 0)
            return ret;
        if (table.footer.sizes[FOOTER_SUM].line)
            return finish(reader, &table);
    }
    return reader_truncated(reader, rules < 2 ? "the rule under its rows" : "its last line, 'Estimated Total Size'");
}
