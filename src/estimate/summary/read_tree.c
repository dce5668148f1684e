/* print(model) of PyTorch: "(name): Type(arguments)", with children indented between "Type(" and ")". Equal neighbours
 * are "(0-11): 12 x Type(". An annotated module has ", N params" after its closing bracket: all parameters in it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/summary/read_formats.h"
#include "estimate/summary/read_repr.h"

#define MAX_DEPTH 200

struct module {
    size_t layer; /* in the list */
    int64_t copies;
    int64_t below; /* parameters of its children, as far as they have ended */
    bool exact;    /* its own parameters are known by its repr */
    uint32_t line;
};

struct tree {
    struct reader *reader;
    struct module open[MAX_DEPTH + 1]; /* from the model down */
    struct slice path[MAX_DEPTH + 1];
    int depth;         /* how many are open */
    int64_t annotated; /* the model's own total, or -1 */
};

/* Takes ", 590,592 params" off the end. */
static int take_annotation(const struct reader *reader, struct slice *text, int64_t *parameters)
{
    static const char word[] = " params";
    struct slice rest = *text;
    size_t begin;

    *parameters = -1;
    if (!slice_ends(rest, word))
        return 0;
    rest.length -= sizeof word - 1;
    begin = rest.length;
    while (begin > 0 && ((rest.text[begin - 1] >= '0' && rest.text[begin - 1] <= '9') || rest.text[begin - 1] == ','))
        begin--;
    if (begin < 2 || rest.text[begin - 1] != ' ' || rest.text[begin - 2] != ',')
        return 0;
    *text = slice_to(rest, begin - 2);
    return parse_parameters(reader, slice_from(rest, begin), reader->number, parameters);
}

/* "12 x " before a type, with "0-11" as its name: the name becomes the first number. */
static int take_copies(const struct reader *reader, struct slice *text, struct slice *name, int64_t *copies)
{
    size_t blank = slice_find_char(*text, ' '), dash = slice_find_char(*name, '-');
    int64_t first, last;

    *copies = 1;
    if (!slice_starts(slice_from(*text, blank), " x ") || !parse_count(slice_to(*text, blank), copies))
        return 0;
    *text = slice_from(*text, blank + 3);
    if (dash < name->length && parse_count(slice_to(*name, dash), &first) &&
        parse_count(slice_from(*name, dash + 1), &last) && last - first + 1 != *copies)
        return reader_error(reader, "%lld modules, numbered %lld to %lld", (long long)*copies, (long long)first,
                            (long long)last);
    if (*copies < 1 || *copies > LAYER_LIST_MAX)
        return reader_error(reader, "%lld copies of a module (1 to %d)", (long long)*copies, LAYER_LIST_MAX);
    *name = slice_to(*name, dash);
    return 0;
}

/* The layer under another number: the rest of its name behind `prefix`, after the prefix's last part was replaced. */
static void rename_copy(struct layer *layer, struct slice prefix, int64_t number)
{
    char name[2 * LAYER_NAME_SIZE];
    size_t base = prefix.length, length;

    if (strncmp(layer->name, prefix.text, prefix.length) != 0 ||
        (layer->name[prefix.length] != '.' && layer->name[prefix.length] != '\0'))
        return; /* its beginning was cut off */
    while (base > 0 && prefix.text[base - 1] != '.')
        base--;
    snprintf(name, sizeof name, "%.*s%lld%s", (int)base, prefix.text, (long long)number, layer->name + prefix.length);
    length = strlen(name);
    length = length < sizeof layer->name ? 0 : length - (sizeof layer->name - 1);
    memcpy(layer->name, name + length, strlen(name + length) + 1);
}

/* Repeats the layers from `first` on. */
static int copy_layers(struct tree *tree, size_t first, int64_t copies, struct slice prefix)
{
    struct reader *reader = tree->reader;
    struct layer_list *list = reader->list;
    size_t count = list->count - first;
    int64_t number;
    size_t digits = prefix.length;

    while (digits > 0 && prefix.text[digits - 1] != '.')
        digits--;
    if (!parse_count(slice_from(prefix, digits), &number))
        number = 0;
    if ((int64_t)list->count + (copies - 1) * (int64_t)count > LAYER_LIST_MAX)
        return reader_error(reader, "more than %d layers", LAYER_LIST_MAX);
    for (int64_t copy = 1; copy < copies; copy++)
        for (size_t i = 0; i < count; i++) {
            struct layer *layer = reader_add(reader, LAYER_UNKNOWN, SLICE(""), SLICE(""), reader->lines[first + i]);
            if (!layer)
                return -EINVAL;
            *layer = list->items[first + i];
            rename_copy(layer, prefix, number + copy);
        }
    return 0;
}

static int add_parameter(struct tree *tree, int64_t parameters, uint32_t depth, struct slice name, uint32_t line)
{
    struct layer *layer = reader_add(tree->reader, LAYER_PARAMETER, SLICE("Parameter"), name, line);

    if (!layer)
        return -EINVAL;
    layer->parameters = parameters;
    layer->depth = (uint8_t)depth;
    return 0;
}

/* torch's attention shows only its last projection: the layer takes it in. */
static bool take_projection(struct tree *tree, const struct module *module)
{
    struct layer_list *list = tree->reader->list;
    struct layer *layer = &list->items[module->layer], *last = &list->items[list->count - 1];
    int64_t biases;

    if (layer->kind != LAYER_ATTENTION || list->count != module->layer + 2 ||
        strcmp(last->type, "NonDynamicallyQuantizableLinear") != 0 || last->rank == 0 || last->shape[0] > (1 << 19))
        return false;
    biases = last->bias ? 1 : 0;
    layer->rank = 1;
    layer->shape[0] = last->shape[0];
    layer->bias_known = true;
    layer->bias = last->bias;
    layer->parameters = 4 * last->shape[0] * (last->shape[0] + biases);
    list->count--;
    return true;
}

/* A module ends: the parameters beyond its children's are its own. */
static int close_module(struct tree *tree, int64_t annotated)
{
    struct module *module = &tree->open[--tree->depth];
    struct layer_list *list = tree->reader->list;
    const bool children = list->count > module->layer + 1, whole = children && take_projection(tree, module);
    struct layer *layer = &list->items[module->layer];
    int64_t below = whole ? 0 : module->below, own = layer->parameters, total;
    char text[LAYER_NAME_SIZE];
    int ret = 0;

    if (annotated >= 0 && annotated < below)
        return reader_error(tree->reader, "%s has %lld params, but the layers in it have %lld", layer->type,
                            (long long)annotated, (long long)below);
    if (annotated >= 0 && module->exact && annotated - below != own)
        return reader_error(tree->reader, "%s has %lld params, but by its arguments %lld", layer->type,
                            (long long)(annotated - below), (long long)own);
    if (annotated >= 0)
        own = annotated - below;
    total = own + below;
    layer->parameters = own;
    if (children && !whole && (layer->kind == LAYER_UNKNOWN || own == 0 || layer->kind == LAYER_ATTENTION)) {
        layer->container = true;
        layer->parameters = total;
        if (own > 0)
            ret = add_parameter(tree, own, layer->depth + 1u, (struct slice){layer->name, strlen(layer->name)},
                                module->line);
    }
    if (!ret && module->copies > 1)
        ret = copy_layers(tree, module->layer, module->copies, join_path(text, tree->path + 1, tree->depth));
    if (ret)
        return ret;
    if (total > LAYER_MAX_PARAMETERS / module->copies)
        return reader_error(tree->reader, "more than %lld parameters", (long long)LAYER_MAX_PARAMETERS);
    if (tree->depth > 0)
        tree->open[tree->depth - 1].below += total * module->copies;
    if (tree->depth > 0 && tree->open[tree->depth - 1].below > LAYER_MAX_PARAMETERS)
        return reader_error(tree->reader, "more than %lld parameters", (long long)LAYER_MAX_PARAMETERS);
    if (tree->depth == 0)
        tree->annotated = annotated;
    return 0;
}

/* "3x4" */
static int read_size(const struct reader *reader, struct slice text, int64_t *elements)
{
    int64_t size;

    for (*elements = 1; text.length > 0;) {
        size_t end = slice_find_char(text, 'x');
        if (!parse_count(slice_to(text, end), &size) || __builtin_mul_overflow(*elements, size, elements) ||
            *elements > LAYER_MAX_PARAMETERS)
            return reader_error(reader, "a parameter whose size is out of range");
        text = slice_from(text, end < text.length ? end + 1 : end);
    }
    return 0;
}

/* "Parameter containing: [torch.float32 of size 3x4]", or several of them: their elements. */
static int read_sizes(const struct reader *reader, struct slice text, int64_t *sum)
{
    static const char word[] = " of size ";
    struct slice size;
    int64_t elements;
    int ret;

    for (*sum = 0;;) {
        size_t at = slice_find(text, word);
        if (at == text.length)
            return 0;
        text = slice_from(text, at + sizeof word - 1);
        /* "3x4]" or, on a GPU, "3x4 (GPU 0)]" */
        size = slice_to(text, slice_find_char(text, ']'));
        ret = read_size(reader, slice_to(size, slice_find_char(size, ' ')), &elements);
        if (ret)
            return ret;
        *sum += elements;
        if (*sum > LAYER_MAX_PARAMETERS)
            return reader_error(reader, "more than %lld parameters", (long long)LAYER_MAX_PARAMETERS);
    }
}

static int read_parameter(struct tree *tree, struct slice text)
{
    char path[LAYER_NAME_SIZE];
    int64_t elements;
    int ret = read_sizes(tree->reader, text, &elements);

    if (ret)
        return ret;
    ret = add_parameter(tree, elements, (uint32_t)tree->depth, join_path(path, tree->path + 1, tree->depth),
                        tree->reader->number);
    tree->open[tree->depth - 1].below += elements;
    return ret;
}

/* "[12 x ]Type(arguments)" or, where its children follow, "[12 x ]Type(". */
static int open_module(struct tree *tree, struct slice name, struct slice text)
{
    struct reader *reader = tree->reader;
    struct module module = {.layer = reader->list->count, .line = reader->number};
    char path[LAYER_NAME_SIZE], quoted[QUOTE_SIZE];
    enum activation activation;
    struct layer *layer;
    int64_t annotated;
    size_t open, close;
    int ret;

    if (tree->depth >= MAX_DEPTH)
        return reader_error(reader, "modules nested more than %d deep", MAX_DEPTH);
    ret = take_annotation(reader, &text, &annotated);
    if (!ret)
        ret = take_copies(reader, &text, &name, &module.copies);
    if (ret)
        return ret;
    open = slice_find_char(text, '(');
    if (open == 0 || open == text.length || slice_find_char(text, ' ') < open)
        return reader_error(reader, "'%s' is not a module: 'Type(...)' is expected", quote(quoted, text));
    tree->path[tree->depth] = name;
    layer = reader_add(reader, LAYER_UNKNOWN, slice_to(text, open), join_path(path, tree->path + 1, tree->depth),
                       reader->number);
    if (!layer)
        return -EINVAL;
    layer->kind = (uint8_t)layer_kind_of_type(layer->type, &activation);
    layer->activation = (uint8_t)activation;
    layer->depth = (uint8_t)tree->depth;
    text = slice_from(text, open);
    close = slice_closing(text, '(', ')');
    if (layer->kind == LAYER_PARAMETER && close < text.length)
        ret = read_sizes(reader, slice_to(text, close), &layer->parameters);
    else if (close > 1)
        ret = read_repr(reader, layer, slice_to(slice_from(text, 1), close - 1), &module.exact);
    tree->open[tree->depth++] = module;
    return ret || close == text.length ? ret : close_module(tree, annotated);
}

/* Within a module: its closing bracket, a child, or a line of its own arguments. */
static int read_line(struct tree *tree, struct slice line)
{
    struct module *module = &tree->open[tree->depth - 1];
    struct layer *layer = &tree->reader->list->items[module->layer];
    size_t end = slice_find(line, "): ");
    struct slice rest;
    int64_t annotated;
    int ret;

    if (slice_starts(line, ")")) {
        rest = line;
        ret = take_annotation(tree->reader, &rest, &annotated);
        return ret ? ret : close_module(tree, annotated);
    }
    if (!slice_starts(line, "(") || end == line.length)
        return module->exact || layer->kind == LAYER_UNKNOWN ? 0 : read_repr(tree->reader, layer, line, &module->exact);
    rest = slice_trim(slice_from(line, end + 3));
    line = (struct slice){line.text + 1, end - 1};
    if (slice_starts(rest, "None"))
        return 0;
    if (slice_starts(rest, "Parameter containing")) {
        tree->path[tree->depth] = line;
        return read_parameter(tree, rest);
    }
    return open_module(tree, line, rest);
}

/* The width of a layer's output where `width` (0: any) goes in and layers work on vectors; -1: it does not. */
static int64_t width_after(const struct layer *layer, int64_t width)
{
    if (layer->kind == LAYER_LINEAR && layer->rank == 1 && layer->in_channels > 0)
        return width == 0 || width == layer->in_channels ? layer->shape[0] : -1;
    if (layer->rank == 1 && width > 0 && layer->shape[0] != width)
        return -1;
    return layer->kind == LAYER_ACTIVATION || layer->kind == LAYER_DROPOUT || layer->kind == LAYER_SOFTMAX ||
                   layer->kind == LAYER_IDENTITY || strcmp(layer->type, "BatchNorm1d") == 0 ||
                   strcmp(layer->type, "LayerNorm") == 0 || strcmp(layer->type, "Flatten") == 0
               ? width
               : -1;
}

/* A chain of linear layers, and of layers that keep their width, works on vectors: the widths are the shapes. */
static void settle_shapes(struct layer_list *list)
{
    int64_t width = 0, input = 0;

    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        if (layer->container)
            continue;
        if (width == 0 && layer->kind == LAYER_LINEAR)
            input = layer->in_channels;
        width = width_after(layer, width);
        if (width < 0)
            return;
    }
    if (input < 1)
        return;
    list->input[0] = width = input;
    list->input_rank = 1;
    for (size_t i = 0; i < list->count; i++) {
        struct layer *layer = &list->items[i];
        if (layer->container)
            continue;
        if (layer->kind == LAYER_LINEAR)
            width = layer->shape[0];
        layer->rank = 1;
        layer->shape[0] = width;
        layer->shape_known = true;
    }
}

/* Are there modules that may hold parameters besides their children's? */
static bool has_own_classes(const struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].container && !is_plain_container(list->items[i].type))
            return true;
    return false;
}

int read_tree(struct reader *reader)
{
    CLEANUP(free_ptr) struct tree *tree = xcalloc(1, sizeof *tree);
    char type[LAYER_NAME_SIZE];
    int ret;

    tree->reader = reader;
    ret = open_module(tree, (struct slice){0}, slice_trim(reader->line));
    while (!ret && tree->depth > 0 && reader_next(reader)) {
        struct slice line = slice_trim(reader->line);
        if (line.length > 0)
            ret = read_line(tree, line);
    }
    if (ret)
        return ret;
    if (tree->depth > 0) {
        memcpy(type, reader->list->items[tree->open[tree->depth - 1].layer].type, sizeof type);
        return reader_error(reader,
                            "the module tree is truncated: the closing bracket of %s (line %u) is missing; save "
                            "the whole of it",
                            type, tree->open[tree->depth - 1].line);
    }
    reader->list->total_parameters = tree->annotated;
    if (tree->annotated < 0 && has_own_classes(reader->list))
        reader_warn(reader, reader->number, "print(model) does not show the parameters that a module holds itself");
    settle_shapes(reader->list);
    return 0;
}
